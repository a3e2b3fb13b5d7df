/* See _conv.h. */
#include "layers/convolutional/_conv.h"
#include "base/plural.h"
#include "ops/args.h"

enum { SAME = 1, CAUSAL = 2 };

double keel_conv_low_rank(const void *args)
{
    return keel_low_rank_scale(&((const keel_conv *)args)->low_rank);
}

keel_status keel_conv_config(const void *args, json_t *config)
{
    return keel_low_rank_config(&((const keel_conv *)args)->low_rank, config);
}

/* [size.., C / groups, filters], for the op with at least two dims. */
static keel_status kernel_weight(keel_emit *e, int dims, int64_t channels, keel_weight_decl *decl,
                                 keel_weights *w)
{
    const keel_conv *a = e->args;
    const keel_ints size = keel_image_ints(&a->kernel_size);
    keel_shape shape = { .rank = dims + 2 };
    for (int d = 0; d < dims; d++) shape.dim[d] = size.at[d];
    shape.dim[dims] = channels / a->groups;
    shape.dim[dims + 1] = a->filters;
    *decl = keel_kernel_decl(&a->weights, &shape, 0);
    decl->state = keel_low_rank_given(&a->low_rank);
    KEEL_TRY(keel_emit_weight(e, decl, w));
    if (dims == 1)
        w->spec[0].shape = KEEL_SHAPE(size.at[0], size.at[1], channels / a->groups, a->filters);
    return KEEL_OK;
}

static keel_status emit_op(keel_emit *e, int dims, const keel_shape *places, keel_value x,
                           const keel_weights *w, keel_value *out)
{
    const keel_conv *a = e->args;
    const keel_ints size = keel_image_ints(&a->kernel_size), strides = keel_image_ints(&a->strides),
                    dilation = keel_image_ints(&a->dilation_rate);
    keel_conv2d_args image = { .groups = a->groups };
    keel_conv3d_args volume = { .groups = a->groups };
    int64_t *const pad = dims == 3 ? volume.pad : image.pad;
    keel_same_padding(places, a->padding == SAME, &size, &strides, &dilation, pad);
    if (a->padding == CAUSAL) pad[0] = dilation.at[0] * (size.at[0] - 1);
    for (int d = 0; d < size.count; d++) {
        *(dims == 3 ? &volume.strides[d] : &image.strides[d]) = strides.at[d];
        *(dims == 3 ? &volume.dilation[d] : &image.dilation[d]) = dilation.at[d];
    }
    return keel_emit_weighted(e, dims == 3 ? &keel_op_conv3d : &keel_op_conv2d,
                              dims == 3 ? (const void *)&volume : &image, x, w, out);
}

/* Adds the convolution by the first of the two narrow matrices, times the second. */
static keel_status add_low_rank(keel_emit *e, int dims, const keel_shape *places, keel_value x,
                                const keel_weight_decl *kernel, const keel_weights *w,
                                keel_value *y)
{
    const keel_conv *a = e->args;
    keel_weights pair[2] = { { 0 }, { 0 } };
    keel_value first;
    if (!keel_low_rank_given(&a->low_rank)) return KEEL_OK;
    if (a->weights.kernel_constraint.type)
        return keel_fail(KEEL_EUNSUP, "lora_rank with a kernel_constraint: Keras refuses it, too");
    if (a->groups > 1) return keel_fail(KEEL_EUNSUP, "lora_rank with groups is not supported");
    KEEL_TRY(keel_low_rank_declare(e, &a->low_rank, kernel, kernel->shape.rank - 1, pair));
    pair[0].spec[0].shape = w->spec[0].shape;
    pair[0].spec[0].shape.dim[pair[0].spec[0].shape.rank - 1] = a->low_rank.rank;
    KEEL_TRY(emit_op(e, dims, places, x, &pair[0], &first));
    return keel_low_rank_add_second(e, &a->low_rank, pair, first, y);
}

keel_status keel_emit_conv(keel_emit *e, int dims)
{
    const keel_conv *a = e->args;
    keel_shape places;
    keel_weight_decl kernel;
    keel_weights w = { 0 };
    keel_value x, y;
    KEEL_TRY(keel_emit_as_image(e, dims, &x, &places));
    const int64_t channels = places.dim[places.rank - 1];
    if (channels % a->groups || a->filters % a->groups)
        return keel_fail(KEEL_ESHAPE,
                         "groups %lld must divide the %lld channel%s and %lld filter%s",
                         (long long)a->groups, (long long)channels, keel_s(channels),
                         (long long)a->filters, keel_s(a->filters));
    const keel_shape bias = KEEL_SHAPE(a->filters);
    KEEL_TRY(kernel_weight(e, dims, channels, &kernel, &w));
    KEEL_TRY(keel_emit_bias(e, &a->weights, a->use_bias, &bias, &w));
    KEEL_TRY(emit_op(e, dims, &places, x, &w, &y));
    KEEL_TRY(add_low_rank(e, dims, &places, x, &kernel, &w, &y));
    KEEL_TRY(keel_emit_from_image(e, dims, y, &y));
    return keel_emit_activation(e, &a->activation, y, e->out);
}
