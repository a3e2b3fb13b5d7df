/* In training a normal random number with mean 0 is added to each number. */
#include "layers/regularization/dropout.h"
#include "ops/args.h"

typedef struct args_t {
    double stddev;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, stddev, NULL, 0, 1, "standard deviation"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    KEEL_TRY(keel_emit_drawn(e, a->stddev));
    const keel_noise_args op = { .stddev = a->stddev };
    return keel_emit_one(e, &keel_op_noise, &op);
}

const keel_layer keel_layer_gaussian_noise = {
    .type = { KEEL_LAYER_HEAD("GaussianNoise", "Adds normal draws while training."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .by_chance = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
