/* 2D convolution (cross-correlation) over [H, W, C]. kernel: [h, w, C / groups, filters]. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    int64_t filters;
    keel_ints kernel_size, strides;
    int padding, data_format;
    keel_ints dilation_rate;
    int64_t groups;
    keel_object activation;
    bool use_bias;
    keel_object kernel_initializer, bias_initializer;
    keel_object kernel_regularizer, bias_regularizer;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, filters, NULL, 1, 1e9, "how many output channels"),
    KEEL_INTS(args_t, kernel_size, 2, NULL, 1, 65536, "height and width of the window"),
    KEEL_INTS(args_t, strides, 2, "[1, 1]", 1, 65536, "steps of the window"),
    KEEL_CHOICE(args_t, padding, "\"valid\"", "valid|same", "zeros around the image, or none"),
    KEEL_DATA_FORMAT(args_t),
    KEEL_INTS(args_t, dilation_rate, 2, "[1, 1]", 1, 65536, "distance of the window's points"),
    KEEL_INT(args_t, groups, "1", 1, 1e9, "channels are cut into that many groups"),
    KEEL_OBJECT(args_t, activation, "\"linear\"", keel_activation_find, "applied to the outputs"),
    KEEL_BOOL(args_t, use_bias, "true", "add a bias"),
    KEEL_OBJECT(args_t, kernel_initializer, "\"glorot_uniform\"", keel_initializer_find,
                "first values of the kernel"),
    KEEL_OBJECT(args_t, bias_initializer, "\"zeros\"", keel_initializer_find,
                "first values of the bias"),
    KEEL_OBJECT(args_t, kernel_regularizer, "null", keel_regularizer_find, "of the kernel"),
    KEEL_OBJECT(args_t, bias_regularizer, "null", keel_regularizer_find, "of the bias"),
    KEEL_REFUSE("kernel_constraint", "null", "constraint of the kernel"),
    KEEL_REFUSE("bias_constraint", "null", "constraint of the bias"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in;
    keel_variable w[2];
    keel_spec spec[2];
    keel_value y;
    int n = 1;
    KEEL_TRY(keel_channels_last(a->data_format));
    KEEL_TRY(keel_emit_image(e, &in));
    const int64_t channels = in->shape.dim[2];
    if (channels % a->groups || a->filters % a->groups)
        return keel_fail(KEEL_ESHAPE, "groups %lld must divide the %lld channels and %lld filters",
                         (long long)a->groups, (long long)channels, (long long)a->filters);
    const keel_weight_decl kernel = {
        .name = "kernel",
        .shape = KEEL_SHAPE(a->kernel_size.at[0], a->kernel_size.at[1], channels / a->groups,
                            a->filters),
        .initializer = &a->kernel_initializer,
        .regularizer = &a->kernel_regularizer,
    };
    keel_conv2d_args op = { .strides = { a->strides.at[0], a->strides.at[1] },
                            .dilation = { a->dilation_rate.at[0], a->dilation_rate.at[1] },
                            .groups = a->groups };
    keel_same_padding(&in->shape, a->padding == 1, &a->kernel_size, &a->strides, &a->dilation_rate,
                      op.pad);
    KEEL_TRY(e->weight(e, &kernel, &w[0], &spec[0]));
    KEEL_TRY(keel_emit_bias_weight(e, a->use_bias, a->filters, &a->bias_initializer,
                                   &a->bias_regularizer, w, spec, &n));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_conv2d, &op, w, spec, n, &y));
    return keel_emit_activation(e, &a->activation, y, e->out);
}

const keel_layer keel_layer_conv2d = {
    .type = { .name = "Conv2D",
              .module = "keras.layers",
              .help = "2D convolution over images.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .aliases = "Convolution2D",
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
