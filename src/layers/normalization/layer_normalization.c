/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with mean and variance over some dims of
 * each place; rows are independent. */
#include "layers/normalization/_unrounded.h"
#include "layers/normalization/_gamma_beta.h"
#include "layers/normalization/_layer_norm.h"

typedef struct args_t {
    keel_ints axis;
    double epsilon;
    bool rms_scaling;
    KEEL_GAMMA_BETA;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, 0, "-1", -7, 7, "the dims that are normalized together"),
    KEEL_FLOAT(args_t, epsilon, "0.001", 0, 1e30, "added to the variance"),
    KEEL_GAMMA_BETA_FIELDS(args_t),
    KEEL_BOOL(args_t, rms_scaling, "false",
              "only divide by the deviation, and multiply by gamma: Keras's old form of "
              "RMSNormalization"),
    { 0 },
};

static keel_status emit_norm(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_layer_norm_args op = { .epsilon = a->epsilon,
                                      .center = a->center,
                                      .scale = a->scale };
    const keel_shape follows = { 0 }; /* from the dims that are normalized */
    const keel_weight_decl gamma = KEEL_GAMMA(a, follows), beta = KEEL_BETA(a, follows);
    if (a->rms_scaling)
        return keel_emit_by_deviation(e, e->in[0], &a->axis, a->epsilon, &gamma, e->out);
    return keel_emit_layer_norm(e, e->in[0], &a->axis, &op, &gamma, &beta, e->out);
}

static keel_status emit(keel_emit *e)
{
    return emit_unrounded(e, emit_norm);
}

const keel_layer keel_layer_layer_normalization = {
    .type = { KEEL_LAYER_HEAD("LayerNormalization",
                              "Normalizes each place of a row over its features."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .uncast = true,
    .emit = emit,
};
