/* y = activation(x kernel + bias) over the last axis. kernel: [C, units]. */
#include "layers/_kernel.h"
#include "layers/core/low_rank.h"

typedef struct args_t {
    keel_kernel_args weights;
    int64_t units;
    keel_object activation;
    bool use_bias;
    keel_low_rank low_rank;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, units, NULL, 1, 1e9, "how many outputs"),
    KEEL_OBJECT(args_t, activation, "\"linear\"", keel_activation_find, "applied to the outputs"),
    KEEL_BOOL(args_t, use_bias, "true", "add a bias"),
    KEEL_KERNEL_FIELDS,
    KEEL_LOW_RANK_FIELDS(args_t, low_rank),
    KEEL_IGNORE("quantization_config", "for quantize(), which has not been called"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    const bool narrow = keel_low_rank_given(&a->low_rank);
    keel_weights w = { 0 }, pair[2] = { { 0 }, { 0 } };
    keel_value y;
    if (in->rank < 1) return keel_fail(KEEL_ESHAPE, "expected rows with at least one dim");
    if (narrow && a->weights.kernel_constraint.type)
        return keel_fail(KEEL_EUNSUP, "lora_rank with a kernel_constraint: Keras refuses it, too");
    const keel_shape shape = KEEL_SHAPE(in->dim[in->rank - 1], a->units);
    const keel_shape bias = KEEL_SHAPE(a->units);
    keel_weight_decl kernel = keel_kernel_decl(&a->weights, &shape, 0);
    kernel.state = narrow;
    KEEL_TRY(keel_emit_weight(e, &kernel, &w));
    KEEL_TRY(keel_emit_bias(e, &a->weights, a->use_bias, &bias, &w));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, e->in[0], &w, &y));
    if (narrow) {
        KEEL_TRY(keel_low_rank_declare(e, &a->low_rank, &kernel, 1, pair));
        KEEL_TRY(keel_low_rank_add(e, &a->low_rank, &keel_op_dense, pair, e->in[0], &y));
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
    .type = { KEEL_LAYER_HEAD("Dense", "Every output is a weighted sum of all inputs."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .last_dim = true,
    .emit = emit,
    .to_config = to_config,
    .low_rank = low_rank,
};
