/* Normal draws that a call of the caller's makes, trained or not; see package.h. */
#include "layers/package.h"
#include "layers/regularization/dropout.h"
#include "ops/args.h"

typedef struct args_t {
    char unused;
} args_t;

static const keel_field fields[] = { { 0 } };

static keel_status emit(keel_emit *e)
{
    const keel_noise_args op = { .stddev = 1 };
    const bool training = e->graph->training;
    e->graph->training = true;
    const keel_status s = keel_emit_one(e, &keel_op_noise, &op);
    e->graph->training = training;
    return s;
}

const keel_layer keel_layer_drawn = {
    .type = { .name = KEEL_DRAWN,
              .module = "keel",
              .help = "Adds normal draws.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
