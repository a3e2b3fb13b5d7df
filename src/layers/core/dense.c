/* y = activation(x kernel + bias) over the last axis. kernel: [C, units]. */
#include "layers/layer.h"

typedef struct args_t {
    int64_t units;
    keel_object activation;
    bool use_bias;
    keel_object kernel_initializer, bias_initializer;
    keel_object kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, units, NULL, 1, 1e9, "how many outputs"),
    KEEL_OBJECT(args_t, activation, "\"linear\"", keel_activation_find, "applied to the outputs"),
    KEEL_BOOL(args_t, use_bias, "true", "add a bias"),
    KEEL_OBJECT(args_t, kernel_initializer, "\"glorot_uniform\"", keel_initializer_find,
                "first values of the kernel"),
    KEEL_OBJECT(args_t, bias_initializer, "\"zeros\"", keel_initializer_find,
                "first values of the bias"),
    KEEL_OBJECT(args_t, kernel_regularizer, "null", keel_regularizer_find, "of the kernel"),
    KEEL_OBJECT(args_t, bias_regularizer, "null", keel_regularizer_find, "of the bias"),
    KEEL_OBJECT(args_t, kernel_constraint, "null", keel_constraint_find, "of the kernel"),
    KEEL_OBJECT(args_t, bias_constraint, "null", keel_constraint_find, "of the bias"),
    KEEL_REFUSE("lora_rank", "null", "low-rank adaptation"),
    KEEL_REFUSE("lora_alpha", "null", "low-rank adaptation"),
    KEEL_REFUSE("quantization_config", "null", "quantized weights"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_variable w[2];
    keel_spec spec[2];
    keel_value y;
    int n = 1;
    if (in->rank < 1) return keel_fail(KEEL_ESHAPE, "expected rows with at least one dim");
    const keel_weight_decl kernel = { .name = "kernel",
                                      .shape = KEEL_SHAPE(in->dim[in->rank - 1], a->units),
                                      .initializer = &a->kernel_initializer,
                                      .regularizer = &a->kernel_regularizer,
                                      .constraint = &a->kernel_constraint };
    KEEL_TRY(e->weight(e, &kernel, &w[0], &spec[0]));
    KEEL_TRY(keel_emit_bias_weight(e, a->use_bias, a->units, &a->bias_initializer,
                                   &a->bias_regularizer, &a->bias_constraint, w, spec, &n));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, w, spec, n, &y));
    return keel_emit_activation(e, &a->activation, y, e->out);
}

const keel_layer keel_layer_dense = {
    .type = { .name = "Dense",
              .module = "keras.layers",
              .help = "Every output is a weighted sum of all inputs.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .last_dim = true,
    .emit = emit,
};
