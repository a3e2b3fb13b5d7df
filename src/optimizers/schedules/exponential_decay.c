/* rate decay_rate^(step / decay_steps) */
#include "optimizers/schedules/decays.h"

static const keel_field fields[] = { KEEL_DECAYS_FIELDS("what the rate is multiplied by"), { 0 } };

static double at(const void *args, int64_t step)
{
    const keel_decays *a = args;
    return (float)a->initial_learning_rate *
           powf((float)a->decay_rate, keel_decays_before(a, step));
}

const keel_rate keel_rate_exponential_decay = {
    .type = {
        .name = "ExponentialDecay",
        .module = "keras.optimizers.schedules",
        .help = "a rate that falls by a factor",
        .args_size = sizeof(keel_decays),
        .fields = fields,
    },
    .at = at,
};
