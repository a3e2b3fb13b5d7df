/* See _depthwise.h. */
#include "layers/convolutional/_depthwise.h"
#include "base/memory.h"
#include "ops/args.h"

/* A kernel of [taps.., c, k], which lacks its shape; the op's window has two dims. */
static keel_status kernel_weight(keel_emit *e, int dims, keel_weight_decl kernel, keel_ints taps,
                                 int64_t c, int64_t k, keel_weights *w)
{
    taps = keel_image_ints(&taps);
    kernel.shape.rank = dims + 2;
    for (int d = 0; d < dims; d++) kernel.shape.dim[d] = taps.at[d];
    kernel.shape.dim[dims] = c;
    kernel.shape.dim[dims + 1] = k;
    KEEL_TRY(keel_emit_weight(e, &kernel, w));
    w->spec[w->n - 1].shape = KEEL_SHAPE(taps.at[0], taps.at[1], c, k);
    return KEEL_OK;
}

static keel_status bias_weight(keel_emit *e, int64_t n, keel_weights *w)
{
    const keel_depthwise *a = e->args;
    const keel_weight_decl bias = { .name = "bias",
                                    .shape = KEEL_SHAPE(n),
                                    .initializer = &a->bias_initializer,
                                    .regularizer = &a->bias_regularizer,
                                    .constraint = &a->bias_constraint };
    return a->use_bias ? keel_emit_weight(e, &bias, w) : KEEL_OK;
}

static keel_status emit_each(keel_emit *e, int dims, const char *name, keel_shape *image,
                             int64_t *channels, keel_value *x, keel_weights *w)
{
    const keel_depthwise *a = e->args;
    KEEL_TRY(keel_emit_as_image(e, dims, x, image));
    if (!keel_mul_i64(image->dim[2], a->depth_multiplier, channels))
        return keel_fail(KEEL_ESHAPE, "depth_multiplier %lld is too large",
                         (long long)a->depth_multiplier);
    const keel_weight_decl kernel = { .name = name,
                                      .initializer = &a->depthwise_initializer,
                                      .regularizer = &a->depthwise_regularizer,
                                      .constraint = &a->depthwise_constraint };
    return kernel_weight(e, dims, kernel, a->kernel_size, image->dim[2], a->depth_multiplier, w);
}

static keel_conv2d_args args_of(const keel_depthwise *a, const keel_shape *image)
{
    const keel_ints size = keel_image_ints(&a->kernel_size), strides = keel_image_ints(&a->strides),
                    dilation = keel_image_ints(&a->dilation_rate);
    keel_conv2d_args op = { .strides = { strides.at[0], strides.at[1] },
                            .dilation = { dilation.at[0], dilation.at[1] },
                            .groups = 1 };
    keel_same_padding(image, a->padding == 1, &size, &strides, &dilation, op.pad);
    return op;
}

keel_status keel_emit_depthwise(keel_emit *e, int dims)
{
    const keel_depthwise *a = e->args;
    keel_weights w = { 0 };
    keel_shape image;
    keel_value x;
    int64_t channels;
    KEEL_TRY(emit_each(e, dims, "kernel", &image, &channels, &x, &w));
    const keel_conv2d_args op = args_of(a, &image);
    KEEL_TRY(bias_weight(e, channels, &w));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_depthwise_conv2d, &op, x, &w, &x));
    KEEL_TRY(keel_emit_from_image(e, dims, x, &x));
    return keel_emit_activation(e, &a->activation, x, e->out);
}

keel_status keel_emit_separable(keel_emit *e, int dims)
{
    static const keel_conv2d_args point = { .strides = { 1, 1 },
                                            .dilation = { 1, 1 },
                                            .groups = 1 };
    const keel_depthwise *a = e->args;
    const keel_ints one = { 1, { 1, 1 } };
    keel_weights each = { 0 }, all = { 0 };
    keel_shape image;
    keel_value x;
    int64_t channels;
    KEEL_TRY(emit_each(e, dims, "depthwise_kernel", &image, &channels, &x, &each));
    const keel_conv2d_args op = args_of(a, &image);
    const keel_weight_decl kernel = { .name = "pointwise_kernel",
                                      .initializer = &a->pointwise_initializer,
                                      .regularizer = &a->pointwise_regularizer,
                                      .constraint = &a->pointwise_constraint };
    KEEL_TRY(kernel_weight(e, dims, kernel, one, channels, a->filters, &all));
    KEEL_TRY(bias_weight(e, a->filters, &all));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_depthwise_conv2d, &op, x, &each, &x));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_conv2d, &point, x, &all, &x));
    KEEL_TRY(keel_emit_from_image(e, dims, x, &x));
    return keel_emit_activation(e, &a->activation, x, e->out);
}
