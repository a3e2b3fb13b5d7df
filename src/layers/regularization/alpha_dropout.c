/* In training each number becomes SELU's lowest value with probability `rate`; then all are scaled
 * and shifted so that mean and variance stay the same. Klambauer et al. 2017. */
#include "layers/regularization/dropout.h"
#include "ops/args.h"
#include <math.h>

typedef struct args_t {
    double rate;
    keel_ints noise_shape;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, rate, NULL, 0, 1, "the fraction that is replaced"),
    KEEL_NOISE_SHAPE(args_t),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    { 0 },
};

/* With p = the lowest value: x kept + p (1 - kept) = p + kept (x - p), of which dropout makes
 * kept (x - p) / (1 - rate). */
static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const double lowest = -1.6732632423543772848 * 1.0507009873554804934;
    if (a->rate >= 1) return keel_fail(KEEL_EUNSUP, "rate 1: nothing would be left");
    keel_dropout_args drop = { .rate = a->rate };
    if (a->noise_shape.count >= 0) KEEL_TRY(keel_noise_shape(e, &a->noise_shape, &drop.noise));
    KEEL_TRY(keel_emit_drawn(e, a->rate));
    e->out[0] = e->in[0];
    if (!e->training || a->rate <= 0) return KEEL_OK;
    const double scale = 1 / sqrt((1 - a->rate) * (1 + a->rate * lowest * lowest));
    const keel_rescaling_args before = { .scale = 1, .offset = -lowest };
    const keel_rescaling_args behind = { .scale = scale * (1 - a->rate),
                                         .offset = scale * lowest * (1 - a->rate) };
    keel_value x;
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &before, e->in, 1, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_dropout, &drop, &x, 1, &x));
    return keel_emit_on(e, &keel_op_rescaling, &behind, &x, 1, e->out);
}

const keel_layer keel_layer_alpha_dropout = {
    .type = { KEEL_LAYER_HEAD("AlphaDropout",
                              "Dropout that keeps the mean and variance of SELU's outputs."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .by_chance = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
