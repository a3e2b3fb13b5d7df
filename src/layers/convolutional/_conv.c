/* See _conv.h. */
#include "layers/convolutional/_conv.h"
#include "ops/args.h"

enum { SAME = 1, CAUSAL = 2 };

/* [size.., C / groups, filters]. The op's window has two dims. */
static keel_status kernel_weight(keel_emit *e, int dims, int64_t channels, keel_variable *w,
                                 keel_spec *spec)
{
    const keel_conv *a = e->args;
    keel_weight_decl kernel = {
        .name = "kernel",
        .shape = { .rank = dims + 2 },
        .initializer = &a->kernel_initializer,
        .regularizer = &a->kernel_regularizer,
    };
    const keel_ints size = keel_image_ints(&a->kernel_size);
    for (int d = 0; d < dims; d++) kernel.shape.dim[d] = size.at[d];
    kernel.shape.dim[dims] = channels / a->groups;
    kernel.shape.dim[dims + 1] = a->filters;
    KEEL_TRY(e->weight(e, &kernel, w, spec));
    spec->shape = KEEL_SHAPE(size.at[0], size.at[1], channels / a->groups, a->filters);
    return KEEL_OK;
}

keel_status keel_emit_conv(keel_emit *e, int dims)
{
    const keel_conv *a = e->args;
    const keel_ints size = keel_image_ints(&a->kernel_size), strides = keel_image_ints(&a->strides),
                    dilation = keel_image_ints(&a->dilation_rate);
    keel_shape image;
    keel_variable w[2];
    keel_spec spec[2];
    keel_value x, y;
    int n = 1;
    KEEL_TRY(keel_channels_last(a->data_format));
    KEEL_TRY(keel_emit_as_image(e, dims, &x, &image));
    const int64_t channels = image.dim[2];
    if (channels % a->groups || a->filters % a->groups)
        return keel_fail(KEEL_ESHAPE, "groups %lld must divide the %lld channels and %lld filters",
                         (long long)a->groups, (long long)channels, (long long)a->filters);
    keel_conv2d_args op = { .strides = { strides.at[0], strides.at[1] },
                            .dilation = { dilation.at[0], dilation.at[1] },
                            .groups = a->groups };
    keel_same_padding(&image, a->padding == SAME, &size, &strides, &dilation, op.pad);
    if (a->padding == CAUSAL) op.pad[0] = dilation.at[0] * (size.at[0] - 1);
    KEEL_TRY(kernel_weight(e, dims, channels, &w[0], &spec[0]));
    KEEL_TRY(keel_emit_bias_weight(e, a->use_bias, a->filters, &a->bias_initializer,
                                   &a->bias_regularizer, w, spec, &n));
    const keel_node_parts parts = { .op = &keel_op_conv2d,
                                    .args = &op,
                                    .n_in = 1,
                                    .in = &x,
                                    .n_weight = n,
                                    .weight = w,
                                    .weight_spec = spec };
    KEEL_TRY(keel_emit_op(e, &parts, &y));
    KEEL_TRY(keel_emit_from_image(e, dims, y, &y));
    return keel_emit_activation(e, &a->activation, y, e->out);
}
