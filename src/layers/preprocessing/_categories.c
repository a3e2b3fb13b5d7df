/* See _categories.h. */
#include "layers/preprocessing/_categories.h"
#include "base/hash.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

keel_status keel_categories_sparse(bool sparse, int mode)
{
    if (!sparse || mode != KEEL_CATEGORY_INT) return KEEL_OK;
    return keel_fail(KEEL_EARG, "sparse goes with the output modes that give numbers, not 'int'");
}

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

void keel_categories_add(int64_t index, double weight, const keel_tensor *out)
{
    if (out->dtype == KEEL_FLOAT64)
        ((double *)out->data)[index] += weight;
    else
        ((float *)out->data)[index] += (float)weight;
}

void keel_categories_put(int mode, int64_t depth, int64_t index, int64_t i, const keel_tensor *out)
{
    if (mode == KEEL_CATEGORY_INT) {
        ((int64_t *)out->data)[i] = index;
        return;
    }
    if (index < 0 || index >= depth) return;
    if (mode == KEEL_CATEGORY_ONE_HOT) index += i * depth;
    if (mode >= KEEL_CATEGORY_COUNT)
        keel_categories_add(index, 1, out);
    else if (out->dtype == KEEL_FLOAT64)
        ((double *)out->data)[index] = 1;
    else
        ((float *)out->data)[index] = 1;
}

keel_status keel_category_config(const void *args, json_t *config)
{
    const int mode = ((const keel_category_args *)args)->output_mode;
    if (mode != KEEL_CATEGORY_INT) return KEEL_OK;
    if (!json_object_set_new(config, "dtype", json_string("int64"))) return KEEL_OK;
    return keel_fail(KEEL_ENOMEM, "out of memory writing a layer");
}

static keel_status run(const void *args, const keel_tensor *in, int n_in, const keel_tensor *out,
                       keel_scratch *scratch)
{
    (void)n_in;
    (void)scratch;
    const keel_category_args *a = args;
    keel_categories_begin(out);
    for (int64_t i = 0, n = keel_shape_count(&in->shape); i < n; i++)
        keel_categories_put(a->output_mode, a->depth, a->index(args, in, i), i, out);
    return KEEL_OK;
}

keel_status keel_category_emit(keel_emit *e)
{
    const keel_category_args *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_spec out;
    KEEL_TRY(keel_categories_sparse(a->sparse, a->output_mode));
    KEEL_TRY(keel_categories_spec(a->output_mode, a->depth, in, e->graph->real, &out));
    if (a->output_mode == KEEL_CATEGORY_INT) e->gives = KEEL_WHOLE_ALWAYS;
    return keel_emit_host(e, run, &out, e->out);
}

keel_status keel_category_weights(const keel_emit *e, bool counts)
{
    static const char *const names[] = { "inputs", "count_weights", NULL };
    const keel_spec *in = keel_emit_in(e, 0), *weights = e->n_in > 1 ? keel_emit_in(e, 1) : NULL;
    const json_t *given[2];
    KEEL_TRY(keel_call_arguments(e, names, given));
    if (!weights && (!given[1] || json_is_null(given[1]))) return KEEL_OK;
    if (!weights || json_integer_value(json_object_get(given[1], KEEL_CALL_VALUE)) != 1)
        return keel_fail(KEEL_EUNSUP,
                         "it takes one input, and count_weights as another value of the model");
    if (!counts) return keel_fail(KEEL_EARG, "count_weights goes with output_mode 'count' only");
    if (weights->dtype == KEEL_STRING || !keel_shape_equal(&weights->shape, &in->shape))
        return keel_fail(KEEL_ESHAPE, "count_weights must be one number for each of its input");
    return KEEL_OK;
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

keel_string keel_text_at(const keel_tensor *in, int64_t i, char digits[32])
{
    keel_string s = { digits, 0 };
    if (in->dtype == KEEL_STRING)
        s = ((const keel_string *)in->data)[i];
    else
        s.n_bytes = snprintf(digits, 32, "%lld", (long long)keel_whole_number_at(in, i));
    if (!s.data) s.data = ""; /* padding after a row that is shorter than others */
    return s;
}

uint64_t keel_text_hash(const json_t *salt, const keel_string *s)
{
    if (!salt) return keel_fingerprint(s->data ? s->data : "", (size_t)s->n_bytes);
    uint64_t key[2];
    for (size_t k = 0; k < 2; k++)
        key[k] = (uint64_t)json_integer_value(json_is_array(salt) ? json_array_get(salt, k) : salt);
    return keel_siphash(key, s->data, (size_t)s->n_bytes);
}
