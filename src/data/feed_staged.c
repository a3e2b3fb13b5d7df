/* Streams whose rows have their own shapes: rows are collected until they make a batch, then copied
 * into its slot, each padded with 0 in its open dims to the largest of the batch. Slots grow, in
 * the thread that reads ahead, and never shrink. */
#include "base/memory.h"
#include "data/feed_impl.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

struct keel_staged {
    char *data[KEEL_FIELDS_MAX]; /* rows, one after another, unpadded */
    size_t size[KEEL_FIELDS_MAX], used[KEEL_FIELDS_MAX];
    int64_t rows;
    keel_shape *shape; /* [max_rows][n_field of the spec] */
};

keel_status keel_feed_staged_create(keel_feed *f)
{
    size_t n;
    if (!keel_mul((size_t)f->max_rows, (size_t)f->spec->n_field, &n))
        return keel_fail(KEEL_EARG, "%s: %lld rows are more than a batch can have",
                         keel_dataset_name(f->dataset), (long long)f->max_rows);
    if (!(f->staged = keel_calloc(1, sizeof *f->staged))) return KEEL_ENOMEM;
    f->staged->shape = keel_calloc(n, sizeof *f->staged->shape);
    return f->staged->shape ? KEEL_OK : KEEL_ENOMEM;
}

void keel_feed_staged_destroy(keel_feed *f)
{
    if (!f->staged) return;
    for (int i = 0; i < f->spec->n_field; i++) {
        keel_free(f->staged->data[i]);
        keel_account_give(f->o.account, (int64_t)f->staged->size[i]);
    }
    keel_free(f->staged->shape);
    keel_free(f->staged);
    f->staged = NULL;
}

/* The shape of a row must be that of the field, except in open dims. */
static keel_status check_shape(const keel_feed *f, int i, const keel_shape *shape, int64_t rows)
{
    const keel_data_field *field = &f->spec->field[i];
    char has[96], wants[96];
    int64_t bytes;
    bool good = shape->rank == field->shape.rank;
    for (int d = 0; good && d < shape->rank; d++) {
        const int64_t want = field->shape.dim[d];
        good = want == KEEL_DIM_OPEN ? shape->dim[d] >= 0 : shape->dim[d] == want;
    }
    if (good && keel_shape_check(shape, sizeof(double)) >= 0 &&
        keel_mul_i64(keel_shape_count(shape) * (int64_t)sizeof(double), rows, &bytes))
        return KEEL_OK;
    keel_shape_text(has, shape);
    keel_shape_text(wants, &field->shape);
    return keel_fail(KEEL_ECALLBACK, "%s: a row of '%s' has the shape %s, but says it has %s",
                     keel_dataset_name(f->dataset), field->path, has, wants);
}

/* Room for `size` bytes, or if the account has less for `least`; both are held at a time. */
static keel_status grow(keel_account *a, keel_staged *t, int i, size_t size, size_t least)
{
    if (!keel_account_try(a, (int64_t)size)) {
        size = least;
        if (!keel_account_take(a, (int64_t)size)) return KEEL_ENOMEM;
    }
    char *larger = keel_grow(NULL, size, 1);
    if (!larger) {
        keel_account_give(a, (int64_t)size);
        return KEEL_ENOMEM;
    }
    if (t->used[i]) memcpy(larger, t->data[i], t->used[i]);
    keel_free(t->data[i]);
    keel_account_give(a, (int64_t)t->size[i]);
    t->data[i] = larger;
    t->size[i] = size;
    return KEEL_OK;
}

static keel_status append(keel_account *a, keel_staged *t, int i, const void *data, size_t bytes)
{
    if (bytes > t->size[i] - t->used[i]) {
        size_t size;
        if (!keel_mul(t->used[i] + bytes, 2, &size))
            return keel_fail(KEEL_EDATA, "a batch is larger than the address space");
        KEEL_TRY(grow(a, t, i, size, t->used[i] + bytes));
    }
    if (bytes) memcpy(t->data[i] + t->used[i], data, bytes);
    t->used[i] += bytes;
    return KEEL_OK;
}

keel_status keel_feed_stage(const keel_feed *f, bool first, const void *const *data,
                            const keel_shape *shape, int64_t rows)
{
    keel_staged *t = f->staged;
    const int n = f->spec->n_field;
    if (first) {
        t->rows = 0;
        memset(t->used, 0, sizeof t->used);
    }
    for (int i = 0; i < n; i++) {
        KEEL_TRY(check_shape(f, i, &shape[i], rows));
        if (!data[i])
            return keel_fail(KEEL_ECALLBACK, "%s: '%s' of a row is NULL",
                             keel_dataset_name(f->dataset), f->spec->field[i].path);
    }
    size_t before[KEEL_FIELDS_MAX];
    memcpy(before, t->used, sizeof before);
    for (int i = 0; i < n; i++) {
        const size_t element = keel_dtype_size(f->spec->field[i].dtype);
        const keel_status s = append(f->o.account, t, i, data[i],
                                     (size_t)(keel_shape_count(&shape[i]) * rows) * element);
        if (s < 0) {
            memcpy(t->used, before, sizeof before);
            return s;
        }
    }
    for (int64_t k = 0; k < rows; k++)
        memcpy(t->shape + (t->rows + k) * n, shape, (size_t)n * sizeof *shape);
    t->rows += rows;
    return KEEL_OK;
}

/* The padded shape of field i: the largest of each open dim, or the bucket that it fits in. */
static keel_status find_largest(const keel_feed *f, int i, keel_shape *all)
{
    const keel_staged *t = f->staged;
    *all = f->spec->field[i].shape;
    for (int d = 0; d < all->rank; d++) {
        int64_t most = 0;
        if (all->dim[d] != KEEL_DIM_OPEN) continue;
        for (int64_t k = 0; k < t->rows; k++) {
            const int64_t dim = t->shape[k * f->spec->n_field + i].dim[d];
            if (dim > most) most = dim;
        }
        all->dim[d] = keel_feed_padded(f, most);
        if (all->dim[d] < 0)
            return keel_fail(KEEL_EDATA,
                             "%s: a row of '%s' has length %lld, and the largest bucket is %lld; "
                             "add one that it fits in",
                             keel_dataset_name(f->dataset), f->spec->field[i].path, (long long)most,
                             (long long)f->o.bucket[f->o.bucket_count - 1]);
    }
    return keel_shape_check(all, sizeof(double));
}

/* Copy a row into its place in the batch, which has the padded shape and is zeroed. */
static keel_status put(char *to, keel_dtype want, const char *from, const keel_data_field *field,
                       const keel_shape *row, const keel_shape *all)
{
    int whole = row->rank; /* from this dim on both shapes are equal */
    while (whole > 0 && row->dim[whole - 1] == all->dim[whole - 1]) whole--;
    const int outer = whole > 0 ? whole - 1 : 0;
    int64_t run = 1, step = 1, lines = 1;
    for (int d = outer; d < row->rank; d++) {
        run *= row->dim[d];
        step *= all->dim[d];
    }
    for (int d = 0; d < outer; d++) lines *= row->dim[d];
    for (int64_t k = 0; k < lines && run > 0; k++) {
        int64_t at = 0, left = k, stride = step;
        for (int d = outer - 1; d >= 0; d--) {
            at += left % row->dim[d] * stride;
            left /= row->dim[d];
            stride *= all->dim[d];
        }
        KEEL_TRY(keel_field_write(to + (size_t)at * keel_dtype_size(want), want,
                                  from + (size_t)(k * run) * keel_dtype_size(field->dtype), field,
                                  run));
    }
    return KEEL_OK;
}

/* Zeros for all rows of field i, whose length is known. */
static keel_status make_room(const keel_feed *f, keel_slot *s, int i, int64_t rows)
{
    keel_lengths *own = s->own;
    size_t bytes;
    if (!keel_mul(own->bytes[i], (size_t)rows, &bytes))
        return keel_fail(KEEL_EDATA, "%s: a batch is larger than the address space",
                         keel_dataset_name(f->dataset));
    if (bytes > own->room[i]) {
        if (!keel_account_take(f->o.account, (int64_t)bytes)) return KEEL_ENOMEM;
        char *larger = keel_aligned_calloc(1, bytes);
        if (!larger) {
            keel_account_give(f->o.account, (int64_t)bytes);
            return KEEL_ENOMEM;
        }
        keel_free(s->at[i]);
        keel_account_give(f->o.account, (int64_t)own->room[i]);
        s->taken_bytes += (int64_t)(bytes - own->room[i]);
        s->at[i] = larger;
        __atomic_store_n(&own->room[i], bytes, __ATOMIC_RELAXED); /* keel_feed_bytes reads it */
    }
    memset(s->at[i], 0, bytes);
    return KEEL_OK;
}

static keel_status unstage_field(const keel_feed *f, keel_slot *s, int i)
{
    const keel_staged *t = f->staged;
    const keel_data_field *field = &f->spec->field[i];
    keel_lengths *own = s->own;
    const char *from = t->data[i];
    KEEL_TRY(find_largest(f, i, &own->field[i].shape));
    own->count[i] = keel_shape_count(&own->field[i].shape);
    own->bytes[i] = (size_t)own->count[i] * keel_dtype_size(f->want[i]);
    KEEL_TRY(make_room(f, s, i, t->rows));
    for (int64_t k = 0; k < t->rows; k++) {
        const keel_shape *row = &t->shape[k * f->spec->n_field + i];
        KEEL_TRY(put(s->at[i] + (size_t)k * own->bytes[i], f->want[i], from, field, row,
                     &own->field[i].shape));
        from += (size_t)keel_shape_count(row) * keel_dtype_size(field->dtype);
    }
    return KEEL_OK;
}

keel_status keel_feed_unstage(const keel_feed *f, keel_slot *s)
{
    for (int i = 0; i < f->spec->n_field; i++)
        if (s->at[i]) KEEL_TRY(unstage_field(f, s, i));
    keel_feed_measure_made(f, s);
    for (int i = 0; i < f->n_made; i++)
        KEEL_TRY(make_room(f, s, f->spec->n_field + i, f->staged->rows));
    return KEEL_OK;
}

keel_status keel_feed_reshape(const keel_feed *f, keel_slot *s, int i, const keel_shape *shape,
                              int64_t rows)
{
    if (keel_shape_check(shape, sizeof(double)) < 0)
        return keel_fail(KEEL_EREMOTE, "%s: process 0 sent rows of '%s' of an impossible shape",
                         keel_dataset_name(f->dataset), f->field[i].path);
    s->own->field[i].shape = *shape;
    s->own->count[i] = keel_shape_count(shape);
    s->own->bytes[i] = (size_t)s->own->count[i] * keel_dtype_size(f->want[i]);
    return make_room(f, s, i, rows);
}
