/* Arrays in memory, borrowed from the user or owned when a reader made them. */
#include "base/memory.h"
#include "data/source.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct arrays {
    keel_tensor x, y, weight; /* data NULL: not there */
    int64_t x_count, y_count; /* elements of a row */
    size_t x_bytes, y_bytes, weight_bytes;
    bool owned;
} arrays;

static keel_status read(const void *state, int64_t i, const keel_row *row, keel_scratch *s)
{
    (void)s;
    const arrays *a = state;
    const char *x = a->x.data, *y = a->y.data, *w = a->weight.data;
    if (row->x) keel_convert(row->x, row->real, x + (size_t)i * a->x_bytes, a->x.dtype, a->x_count);
    if (row->y) keel_convert(row->y, row->real, y + (size_t)i * a->y_bytes, a->y.dtype, a->y_count);
    if (row->weight)
        keel_convert(row->weight, row->real, w + (size_t)i * a->weight_bytes, a->weight.dtype, 1);
    return KEEL_OK;
}

/* Rows in shuffled order are nowhere near each other: ask memory for them ahead (measured on rows
 * of 3 KiB: a quarter less time). */
static void expect(const void *state, int64_t i)
{
    const arrays *a = state;
    const char *row = (const char *)a->x.data + (size_t)i * a->x_bytes;
    const size_t n = a->x_bytes < 4096 ? a->x_bytes : 4096;
    for (size_t at = 0; at < n; at += 64) __builtin_prefetch(row + at, 0, 2);
}

static void tensors(const void *state, const keel_tensor **x, const keel_tensor **y,
                    const keel_tensor **weight)
{
    const arrays *a = state;
    *x = &a->x;
    *y = a->y.data ? &a->y : NULL;
    *weight = a->weight.data ? &a->weight : NULL;
}

static void close(void *state)
{
    arrays *a = state;
    if (a->owned) {
        keel_tensor_free(&a->x);
        keel_tensor_free(&a->y);
        keel_tensor_free(&a->weight);
    }
    keel_free(a);
}

const keel_source keel_source_arrays = {
    .name = "arrays",
    .in_memory = true,
    .read = read,
    .expect = expect,
    .tensors = tensors,
    .close = close,
};

static keel_shape row_shape(const keel_tensor *t)
{
    return keel_shape_of(t->shape.rank - 1, t->shape.dim + 1);
}

static keel_status check_tensor(const keel_tensor *t, const char *which, const char *name)
{
    if (t->dtype < 0 || t->dtype >= KEEL_DTYPE_COUNT)
        return keel_fail(KEEL_EARG, "%s: %s has no known dtype", name, which);
    if (t->shape.rank < 1 || t->shape.rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_EARG, "%s: %s must have a first dim that counts rows", name, which);
    KEEL_TRY(keel_shape_check(&t->shape, keel_dtype_size(t->dtype)));
    return KEEL_OK;
}

static keel_status check_rows(const keel_tensor *t, int64_t rows, const char *which,
                              const char *name)
{
    KEEL_TRY(check_tensor(t, which, name));
    if (t->shape.dim[0] != rows)
        return keel_fail(KEEL_ESHAPE, "%s: x has %lld rows but %s has %lld; give one for each row",
                         name, (long long)rows, which, (long long)t->shape.dim[0]);
    return KEEL_OK;
}

static keel_status check_all(const keel_tensor *x, const keel_tensor *y, const keel_tensor *weight,
                             const char *name)
{
    if (!x || !x->data) return keel_fail(KEEL_EARG, "%s: x is NULL", name);
    KEEL_TRY(check_tensor(x, "x", name));
    const int64_t rows = x->shape.dim[0];
    if (rows < 1) return keel_fail(KEEL_EDATA, "%s: x has no rows", name);
    if (y) KEEL_TRY(check_rows(y, rows, "y", name));
    if (!weight) return KEEL_OK;
    KEEL_TRY(check_rows(weight, rows, "weight", name));
    const keel_shape w = row_shape(weight);
    if (keel_shape_count(&w) != 1)
        return keel_fail(KEEL_ESHAPE, "%s: weight must have one number for each row", name);
    return weight->data ? keel_weights_check(weight->data, weight->dtype, rows, 0, name) : KEEL_OK;
}

/* Wraps a (taken over) into a dataset over its tensors. */
static keel_status create(keel_dataset **out, arrays *a, int64_t n_classes, char **class_names,
                          const char *name)
{
    const bool has_y = a->y.data, has_weight = a->weight.data;
    keel_data_spec spec = {
        .x = row_shape(&a->x),
        .x_dtype = a->x.dtype,
        .has_y = has_y,
        .has_weight = has_weight,
        .rows = a->x.shape.dim[0],
        .yields = -1,
        .n_classes = n_classes,
        .class_names = class_names,
    };
    a->x_count = keel_shape_count(&spec.x);
    a->x_bytes = (size_t)a->x_count * keel_dtype_size(a->x.dtype);
    if (has_y) {
        spec.y = row_shape(&a->y);
        spec.y_dtype = a->y.dtype;
        a->y_count = keel_shape_count(&spec.y);
        a->y_bytes = (size_t)a->y_count * keel_dtype_size(a->y.dtype);
    }
    if (has_weight) a->weight_bytes = keel_dtype_size(a->weight.dtype);
    return keel_dataset_create(out, &keel_source_arrays, a, &spec, name);
}

keel_status keel_dataset_from_arrays(keel_dataset **out, const keel_tensor *x, const keel_tensor *y,
                                     const keel_tensor *weight)
{
    if (!out) return keel_fail(KEEL_EARG, "arrays: the result must not be NULL");
    if (y && !y->data) y = NULL;
    if (weight && !weight->data) weight = NULL;
    KEEL_TRY(check_all(x, y, weight, "arrays"));
    arrays *a = keel_calloc(1, sizeof *a);
    if (!a) return KEEL_ENOMEM;
    a->x = *x;
    if (y) a->y = *y;
    if (weight) a->weight = *weight;
    return create(out, a, 0, NULL, "arrays");
}

keel_status keel_dataset_adopt_arrays(keel_dataset **out, keel_tensor *x, keel_tensor *y,
                                      keel_tensor *weight, int64_t n_classes, char **class_names,
                                      const char *name)
{
    keel_tensor *const has_y = y && y->data ? y : NULL;
    keel_tensor *const has_weight = weight && weight->data ? weight : NULL;
    arrays *a = NULL;
    keel_status s = check_all(x, has_y, has_weight, name);
    if (s < 0) goto out;
    s = KEEL_ENOMEM;
    if (!(a = keel_calloc(1, sizeof *a))) goto out;
    a->owned = true;
    a->x = *x;
    *x = (keel_tensor){ 0 };
    if (has_y) a->y = *y;
    if (has_y) *y = (keel_tensor){ 0 };
    if (has_weight) a->weight = *weight;
    if (has_weight) *weight = (keel_tensor){ 0 };
    return create(out, a, n_classes, class_names, name);
out:
    keel_tensor_free(x);
    keel_tensor_free(y);
    keel_tensor_free(weight);
    for (int64_t i = 0; class_names && i < n_classes; i++) keel_free(class_names[i]);
    keel_free(class_names);
    return s;
}
