/* Arrays in memory, borrowed from the user or owned when a reader made them. */
#include "base/memory.h"
#include "base/plural.h"
#include "data/source.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct column { /* one field of all rows */
    keel_data_field field;
    keel_tensor all;
    keel_tensor splits; /* if rows differ in length: row i is [splits[i], splits[i + 1]) */
    int64_t count;      /* elements of a row; with splits, of one step of a row */
    size_t bytes;
} column;

typedef struct arrays {
    int n;
    bool owned;
    column at[];
} arrays;

/* The first step of the column that belongs to row i. */
static int64_t begin_of(const column *c, int64_t i)
{
    return c->splits.data ? ((const int64_t *)c->splits.data)[i] : i;
}

static int64_t length(const void *state, int k, int64_t i)
{
    const column *c = &((const arrays *)state)->at[k];
    return begin_of(c, i + 1) - begin_of(c, i);
}

/* Copy a row and pad it with 0. */
static keel_status read_column(const column *c, int64_t i, void *to, keel_dtype want, int64_t count)
{
    const int64_t begin = begin_of(c, i), n = (begin_of(c, i + 1) - begin) * c->count;
    KEEL_TRY(keel_field_write(to, want, (const char *)c->all.data + (size_t)begin * c->bytes,
                              &c->field, n));
    if (n < count) {
        const size_t size = keel_dtype_size(want);
        memset((char *)to + (size_t)n * size, 0, (size_t)(count - n) * size);
    }
    return KEEL_OK;
}

static keel_status read(const void *state, int64_t i, const keel_row *row, keel_scratch *s)
{
    (void)s;
    const arrays *a = state;
    for (int k = 0; k < a->n; k++) {
        const column *c = &a->at[k];
        if (!row->at[k]) continue;
        if (c->splits.data)
            KEEL_TRY(read_column(c, i, row->at[k], row->want[k], row->count[k]));
        else
            KEEL_TRY(keel_field_write(row->at[k], row->want[k],
                                      (const char *)c->all.data + (size_t)i * c->bytes, &c->field,
                                      c->count));
    }
    return KEEL_OK;
}

/* Prefetch the inputs of a row: shuffled rows are far apart in memory. Rows of 3 KiB then take a
 * quarter less time. */
static void expect(const void *state, int64_t i)
{
    const arrays *a = state;
    for (int k = 0; k < a->n; k++) {
        const column *c = &a->at[k];
        if (c->field.role != KEEL_ROLE_INPUT) continue;
        const int64_t begin = begin_of(c, i);
        const char *row = (const char *)c->all.data + (size_t)begin * c->bytes;
        const size_t bytes = (size_t)(begin_of(c, i + 1) - begin) * c->bytes;
        const size_t n = bytes < 4096 ? bytes : 4096;
        for (size_t at = 0; at < n; at += 64) __builtin_prefetch(row + at, 0, 2);
    }
}

static const keel_tensor *tensor(const void *state, int i)
{
    return &((const arrays *)state)->at[i].all;
}

static void close(void *state)
{
    arrays *a = state;
    for (int i = 0; a->owned && i < a->n; i++) {
        keel_tensor_free(&a->at[i].all);
        keel_tensor_free(&a->at[i].splits);
    }
    keel_free(a);
}

const keel_source keel_source_arrays = {
    .name = "arrays",
    .in_memory = true,
    .read = read,
    .expect = expect,
    .tensor = tensor,
    .length = length,
    .close = close,
};

static int64_t rows_of(const keel_array_field *f)
{
    return f->row_splits.data ? f->row_splits.shape.dim[0] - 1 : f->array.shape.dim[0];
}

/* row_splits must divide the whole array into rows. */
static keel_status check_splits(const keel_array_field *f, const char *name)
{
    const keel_tensor *s = &f->row_splits;
    const int64_t *at = s->data;
    if (!at) return KEEL_OK;
    if (s->dtype != KEEL_INT64 || s->shape.rank != 1 || s->shape.dim[0] < 1)
        return keel_fail(KEEL_EARG,
                         "%s: the row_splits of %s must be int64, one more than there are rows",
                         name, f->path);
    const int64_t n = s->shape.dim[0] - 1, all = f->array.shape.dim[0];
    for (int64_t i = 0; i < n; i++)
        if (at[i] > at[i + 1])
            return keel_fail(KEEL_EDATA,
                             "%s: the row_splits of %s decrease at row %lld, from %lld to "
                             "%lld",
                             name, f->path, (long long)i, (long long)at[i], (long long)at[i + 1]);
    if (at[0] != 0 || at[n] != all)
        return keel_fail(KEEL_EDATA,
                         "%s: the row_splits of %s go from %lld to %lld; its rows are from 0 to "
                         "%lld",
                         name, f->path, (long long)at[0], (long long)at[n], (long long)all);
    return KEEL_OK;
}

static keel_status check(const keel_array_field *f, const keel_array_field *first, const char *name)
{
    const keel_tensor *t = &f->array;
    if (!t->data) return keel_fail(KEEL_EARG, "%s: %s is NULL", name, f->path);
    if ((unsigned)t->dtype >= KEEL_DTYPE_COUNT)
        return keel_fail(KEEL_EARG, "%s: %s has no known dtype", name, f->path);
    if (t->shape.rank < 1 || t->shape.rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_EARG, "%s: %s must have a first dimension, of rows", name, f->path);
    KEEL_TRY(keel_shape_check(&t->shape, keel_dtype_size(t->dtype)));
    KEEL_TRY(check_splits(f, name));
    const int64_t rows = rows_of(f), want = rows_of(first);
    if (rows != want)
        return keel_fail(KEEL_ESHAPE,
                         "%s: %s has %lld row%s but %s has %lld; give one for each row", name,
                         first->path, (long long)want, keel_s(want), f->path, (long long)rows);
    if (rows < 1) return keel_fail(KEEL_EDATA, "%s: %s has no rows", name, f->path);
    if (f->role != KEEL_ROLE_WEIGHT) return KEEL_OK;
    const int64_t places = t->shape.dim[0]; /* with row_splits, more or fewer than rows */
    if (places < 1) return KEEL_OK;
    return keel_weights_check(t->data, t->dtype, places, keel_shape_count(&t->shape) / places, 0,
                              name);
}

static keel_status check_all(const keel_array_field *f, int n, const char *name)
{
    if (n < 1 || n > KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "%s: a row has 1 to %d fields, not %d", name, KEEL_FIELDS_MAX,
                         n);
    for (int i = 0; i < n; i++) {
        if (!f[i].path || !*f[i].path)
            return keel_fail(KEEL_EARG, "%s: field %d has no name", name, i);
        KEEL_TRY(check(&f[i], &f[0], name));
    }
    return KEEL_OK;
}

/* Make a dataset of checked arrays. If `owned`, it takes their memory, on failure too. */
static keel_status create(keel_dataset **out, const keel_array_field *f, int n, bool owned,
                          int64_t n_classes, char **class_names, const char *name)
{
    keel_data_spec spec = {
        .rows = rows_of(&f[0]), .yields = -1, .n_classes = n_classes, .class_names = class_names
    };
    arrays *a = keel_calloc(1, sizeof *a + (size_t)n * sizeof *a->at);
    if (!a) {
        for (int i = 0; owned && i < n; i++) {
            keel_free(f[i].array.data);
            keel_free(f[i].row_splits.data);
        }
        for (int64_t i = 0; class_names && i < n_classes; i++) keel_free(class_names[i]);
        keel_free(class_names);
        return KEEL_ENOMEM;
    }
    a->owned = owned;
    for (a->n = 0; a->n < n; a->n++) {
        column *c = &a->at[a->n];
        const keel_array_field *from = &f[a->n];
        const keel_shape *s = &from->array.shape;
        c->all = from->array;
        c->splits = from->row_splits;
        c->field = (keel_data_field){ .path = from->path,
                                      .dtype = from->array.dtype,
                                      .shape = keel_shape_of(s->rank - 1, s->dim + 1),
                                      .role = from->role,
                                      .target = from->target };
        c->count = keel_shape_count(&c->field.shape);
        c->bytes = (size_t)c->count * keel_dtype_size(c->field.dtype);
        if (c->splits.data) {
            c->field.shape = *s;
            c->field.shape.dim[0] = KEEL_DIM_OPEN;
        }
        spec.field[spec.n_field++] = c->field;
    }
    KEEL_TRY(keel_dataset_create(out, &keel_source_arrays, a, &spec, name));
    for (int i = 0; i < n; i++)
        a->at[i].field = (*out)->origin->spec.field[i]; /* its strings are the dataset's copies */
    return KEEL_OK;
}

keel_status keel_dataset_from_fields(keel_dataset **out, const keel_array_field *fields, int n)
{
    if (!out || !fields) return keel_fail(KEEL_EARG, "arrays: out and fields must not be NULL");
    KEEL_TRY(check_all(fields, n, "arrays"));
    return create(out, fields, n, false, 0, NULL, "arrays");
}

/* Fill f with x, y and weight; returns their number. */
static int fields_of(keel_array_field f[3], const keel_tensor *x, const keel_tensor *y,
                     const keel_tensor *weight)
{
    int n = 0;
    f[n++] = (keel_array_field){ .path = "x", .role = KEEL_ROLE_INPUT };
    if (x) f[0].array = *x;
    if (y && y->data)
        f[n++] = (keel_array_field){ .path = "y", .role = KEEL_ROLE_TARGET, .array = *y };
    if (weight && weight->data)
        f[n++] = (keel_array_field){ .path = "sample_weight",
                                     .role = KEEL_ROLE_WEIGHT,
                                     .array = *weight };
    return n;
}

keel_status keel_dataset_from_arrays(keel_dataset **out, const keel_tensor *x, const keel_tensor *y,
                                     const keel_tensor *weight)
{
    keel_array_field f[3];
    return keel_dataset_from_fields(out, f, fields_of(f, x, y, weight));
}

keel_status keel_dataset_adopt_fields(keel_dataset **out, keel_array_field *f, int n,
                                      int64_t n_classes, char **class_names, const char *name)
{
    keel_status s = check_all(f, n, name);
    if (s >= 0) {
        s = create(out, f, n, true, n_classes, class_names, name);
        for (int i = 0; i < n; i++) f[i].array = f[i].row_splits = (keel_tensor){ 0 };
        return s;
    }
    for (int i = 0; i < n; i++) {
        keel_tensor_free(&f[i].array);
        keel_tensor_free(&f[i].row_splits);
    }
    for (int64_t i = 0; class_names && i < n_classes; i++) keel_free(class_names[i]);
    keel_free(class_names);
    return s;
}

keel_status keel_dataset_adopt_arrays(keel_dataset **out, keel_tensor *x, keel_tensor *y,
                                      keel_tensor *weight, int64_t n_classes, char **class_names,
                                      const char *name)
{
    keel_array_field f[3];
    const int n = fields_of(f, x, y, weight);
    *x = (keel_tensor){ 0 };
    if (y) *y = (keel_tensor){ 0 };
    if (weight) *weight = (keel_tensor){ 0 };
    return keel_dataset_adopt_fields(out, f, n, n_classes, class_names, name);
}
