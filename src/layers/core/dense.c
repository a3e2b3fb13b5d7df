/* y = activation(x kernel + bias) over the last axis. kernel: [C, units]. */
#include "layers/core/low_rank.h"

typedef struct args_t {
    int64_t units;
    keel_object activation;
    bool use_bias;
    keel_object kernel_initializer, bias_initializer;
    keel_object kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint;
    keel_low_rank low_rank;
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
    KEEL_LOW_RANK_FIELDS(args_t, low_rank),
    KEEL_REFUSE("quantization_config", "null", "quantized weights"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_variable w[2], narrow[2];
    keel_spec spec[2], narrow_spec[2];
    keel_value x, y;
    int n = 1;
    if (in->rank < 1) return keel_fail(KEEL_ESHAPE, "expected rows with at least one dim");
    const keel_weight_decl kernel = { .name = "kernel",
                                      .shape = KEEL_SHAPE(in->dim[in->rank - 1], a->units),
                                      .initializer = &a->kernel_initializer,
                                      .regularizer = &a->kernel_regularizer,
                                      .constraint = &a->kernel_constraint,
                                      .state = keel_low_rank_given(&a->low_rank) };
    if (keel_low_rank_given(&a->low_rank) && a->kernel_constraint.type)
        return keel_fail(KEEL_EUNSUP, "lora_rank with a kernel_constraint: Keras refuses it, too");
    KEEL_TRY(e->weight(e, &kernel, &w[0], &spec[0]));
    KEEL_TRY(keel_emit_bias_weight(e, a->use_bias, a->units, &a->bias_initializer,
                                   &a->bias_regularizer, &a->bias_constraint, w, spec, &n));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, w, spec, n, &y));
    if (keel_low_rank_given(&a->low_rank)) {
        KEEL_TRY(keel_low_rank_weights(e, &a->low_rank, "kernel", in->dim[in->rank - 1], a->units,
                                       &a->kernel_regularizer, narrow, narrow_spec));
        KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, narrow, narrow_spec, 1, &x));
        KEEL_TRY(keel_low_rank_add(e, &a->low_rank, x, narrow[1], &narrow_spec[1], y, &y));
    }
    return keel_emit_activation(e, &a->activation, y, e->out);
}

static double low_rank(const void *args)
{
    return keel_low_rank_scale(&((const args_t *)args)->low_rank);
}

static keel_status to_config(const void *args, json_t *config)
{
    return keel_low_rank_config(&((const args_t *)args)->low_rank, config);
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
    .to_config = to_config,
    .low_rank = low_rank,
};
