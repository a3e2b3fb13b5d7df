/* See _categories.h. */
#include "layers/preprocessing/_categories.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

keel_status keel_categories_spec(int mode, int64_t depth, const keel_shape *in, keel_dtype real,
                                 keel_spec *out)
{
    static const char *const names[] = { "int", "one_hot", "multi_hot", "count", "tf_idf" };
    *out = (keel_spec){ .dtype = KEEL_INT64, .shape = *in };
    if (mode == KEEL_CATEGORY_INT) return KEEL_OK;
    out->dtype = real;
    if (mode != KEEL_CATEGORY_ONE_HOT && in->rank != 1)
        return keel_fail(KEEL_EUNSUP, "output_mode '%s' is there for rows of one dim, not of %d",
                         names[mode], in->rank);
    keel_shape *s = &out->shape;
    const bool replaces =
        mode != KEEL_CATEGORY_ONE_HOT || (s->rank > 0 && s->dim[s->rank - 1] == 1);
    if (!replaces && s->rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "output_mode 'one_hot' adds a dim to %d, which is too many",
                         s->rank);
    if (!replaces) s->rank++;
    s->dim[s->rank - 1] = depth;
    return KEEL_OK;
}

void keel_categories_begin(const keel_tensor *out)
{
    memset(out->data, 0, (size_t)keel_shape_count(&out->shape) * keel_dtype_size(out->dtype));
}

void keel_categories_put(int mode, int64_t depth, int64_t index, int64_t i, const keel_tensor *out)
{
    if (mode == KEEL_CATEGORY_INT) {
        ((int64_t *)out->data)[i] = index;
        return;
    }
    if (index < 0 || index >= depth) return;
    if (mode == KEEL_CATEGORY_ONE_HOT) index += i * depth;
    const bool adds = mode >= KEEL_CATEGORY_COUNT;
    if (out->dtype == KEEL_FLOAT64) {
        double *y = (double *)out->data + index;
        *y = adds ? *y + 1 : 1;
    } else {
        float *y = (float *)out->data + index;
        *y = adds ? *y + 1 : 1;
    }
}

keel_status keel_categories_dtype(int mode, json_t *config)
{
    if (mode != KEEL_CATEGORY_INT) return KEEL_OK;
    if (!json_object_set_new(config, "dtype", json_string("int64"))) return KEEL_OK;
    return keel_fail(KEEL_ENOMEM, "out of memory writing a layer");
}

int64_t keel_whole_number_at(const keel_tensor *in, int64_t i)
{
    switch (in->dtype) {
    case KEEL_INT32:
        return ((const int32_t *)in->data)[i];
    case KEEL_INT64:
        return ((const int64_t *)in->data)[i];
    case KEEL_FLOAT32:
        return (int64_t)((const float *)in->data)[i];
    case KEEL_FLOAT64:
        return (int64_t)((const double *)in->data)[i];
    default:
        return ((const uint8_t *)in->data)[i];
    }
}

double keel_number_at(const keel_tensor *in, int64_t i)
{
    if (in->dtype == KEEL_FLOAT32) return ((const float *)in->data)[i];
    if (in->dtype == KEEL_FLOAT64) return ((const double *)in->data)[i];
    return (double)keel_whole_number_at(in, i);
}
