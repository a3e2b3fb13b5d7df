/* In training each number is multiplied by a random number with mean 1 and variance rate / (1 -
 * rate). */
#include "layers/regularization/dropout.h"
#include "ops/args.h"
#include <math.h>

typedef struct args_t {
    double rate;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, rate, NULL, 0, 1, "how strong: the variance is rate / (1 - rate)"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    if (a->rate >= 1)
        return keel_fail(KEEL_EUNSUP, "rate 1: the variance of the draws would not be finite");
    KEEL_TRY(keel_emit_drawn(e, a->rate));
    const keel_noise_args op = { .stddev = sqrt(a->rate / (1 - a->rate)), .multiplies = true };
    return keel_emit_one(e, &keel_op_noise, &op);
}

const keel_layer keel_layer_gaussian_dropout = {
    .type = { KEEL_LAYER_HEAD("GaussianDropout", "Multiplies by normal draws while training."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .by_chance = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
