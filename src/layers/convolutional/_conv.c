/* See _conv.h. */
#include "layers/convolutional/_conv.h"
#include "ops/args.h"

enum { SAME = 1, CAUSAL = 2 };

/* [size.., C / groups, filters], for the op with at least two dims. */
static keel_status kernel_weight(keel_emit *e, int dims, int64_t channels, keel_variable *w,
                                 keel_spec *spec)
{
    const keel_conv *a = e->args;
    keel_weight_decl kernel = {
        .name = "kernel",
        .shape = { .rank = dims + 2 },
        .initializer = &a->kernel_initializer,
        .regularizer = &a->kernel_regularizer,
        .constraint = &a->kernel_constraint,
    };
    const keel_ints size = keel_image_ints(&a->kernel_size);
    for (int d = 0; d < dims; d++) kernel.shape.dim[d] = size.at[d];
    kernel.shape.dim[dims] = channels / a->groups;
    kernel.shape.dim[dims + 1] = a->filters;
    KEEL_TRY(e->weight(e, &kernel, w, spec));
    if (dims == 1)
        spec->shape = KEEL_SHAPE(size.at[0], size.at[1], channels / a->groups, a->filters);
    return KEEL_OK;
}

static keel_status emit_op(keel_emit *e, int dims, const keel_shape *places, keel_node_parts *parts,
                           keel_value *out)
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
    parts->op = dims == 3 ? &keel_op_conv3d : &keel_op_conv2d;
    parts->args = dims == 3 ? (const void *)&volume : &image;
    return keel_emit_op(e, parts, out);
}

keel_status keel_emit_conv(keel_emit *e, int dims)
{
    const keel_conv *a = e->args;
    keel_shape places;
    keel_variable w[2];
    keel_spec spec[2];
    keel_value x, y;
    int n = 1;
    KEEL_TRY(keel_emit_as_image(e, dims, &x, &places));
    const int64_t channels = places.dim[places.rank - 1];
    if (channels % a->groups || a->filters % a->groups)
        return keel_fail(KEEL_ESHAPE, "groups %lld must divide the %lld channels and %lld filters",
                         (long long)a->groups, (long long)channels, (long long)a->filters);
    KEEL_TRY(kernel_weight(e, dims, channels, &w[0], &spec[0]));
    KEEL_TRY(keel_emit_bias_weight(e, a->use_bias, a->filters, &a->bias_initializer,
                                   &a->bias_regularizer, &a->bias_constraint, w, spec, &n));
    keel_node_parts parts = {
        .n_in = 1, .in = &x, .n_weight = n, .weight = w, .weight_spec = spec
    };
    KEEL_TRY(emit_op(e, dims, &places, &parts, &y));
    KEEL_TRY(keel_emit_from_image(e, dims, y, &y));
    return keel_emit_activation(e, &a->activation, y, e->out);
}
