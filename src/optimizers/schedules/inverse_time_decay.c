/* rate / (1 + decay_rate step / decay_steps) */
#include "optimizers/schedules/rate.h"
#include <math.h>

typedef struct args_t {
    double initial_learning_rate, decay_steps, decay_rate;
    bool staircase;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, initial_learning_rate, NULL, -1e30, 1e30, "the rate at step 0"),
    KEEL_FLOAT(args_t, decay_steps, NULL, 1e-30, 1e30, "how many steps the decay takes"),
    KEEL_FLOAT(args_t, decay_rate, NULL, 0, 1e30, "how fast the rate falls"),
    KEEL_BOOL(args_t, staircase, "false", "the rate changes every decay_steps steps alone"),
    KEEL_IGNORE("name", "of the schedule"),
    { 0 },
};

static double at(const void *args, int64_t step)
{
    const args_t *a = args;
    float p = (float)step / (float)a->decay_steps;
    if (a->staircase) p = floorf(p);
    return (float)a->initial_learning_rate / (1 + (float)a->decay_rate * p);
}

const keel_rate keel_rate_inverse_time_decay = {
    .type = {
        .name = "InverseTimeDecay",
        .module = "keras.optimizers.schedules",
        .help = "a rate that falls like one over time",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .at = at,
};
