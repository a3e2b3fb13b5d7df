/* rate / (1 + decay_rate step / decay_steps) */
#include "optimizers/schedules/decays.h"

static const keel_field fields[] = { KEEL_DECAYS_FIELDS("how fast the rate falls"), { 0 } };

static double at(const void *args, int64_t step)
{
    const keel_decays *a = args;
    return (float)a->initial_learning_rate /
           (1 + (float)a->decay_rate * keel_decays_before(a, step));
}

const keel_rate keel_rate_inverse_time_decay = {
    .type = {
        .name = "InverseTimeDecay",
        .module = "keras.optimizers.schedules",
        .help = "a rate that falls like one over time",
        .args_size = sizeof(keel_decays),
        .fields = fields,
    },
    .at = at,
};
