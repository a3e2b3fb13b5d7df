/* (rate - end) (1 - step / decay_steps)^power + end, up to decay_steps, or in cycles whose length
 * is the next multiple of decay_steps. */
#include "optimizers/schedules/rate.h"
#include <math.h>

typedef struct args_t {
    double initial_learning_rate, decay_steps, end_learning_rate, power;
    bool cycle;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, initial_learning_rate, NULL, -1e30, 1e30, "the rate at step 0"),
    KEEL_FLOAT(args_t, decay_steps, NULL, 1e-30, 1e30, "how many steps the decay takes"),
    KEEL_FLOAT(args_t, end_learning_rate, "0.0001", -1e30, 1e30, "the last rate"),
    KEEL_FLOAT(args_t, power, "1.0", -1e30, 1e30, "of what is left"),
    KEEL_BOOL(args_t, cycle, "false", "begin again after decay_steps"),
    KEEL_IGNORE("name", "of the schedule"),
    { 0 },
};

static double at(const void *args, int64_t step)
{
    const args_t *a = args;
    const float end = (float)a->end_learning_rate;
    float done = (float)step, all = (float)a->decay_steps;
    if (a->cycle)
        all *= step == 0 ? 1 : ceilf(done / all);
    else if (done > all)
        done = all;
    return ((float)a->initial_learning_rate - end) * powf(1 - done / all, (float)a->power) + end;
}

const keel_rate keel_rate_polynomial_decay = {
    .type = {
        .name = "PolynomialDecay",
        .module = "keras.optimizers.schedules",
        .help = "a rate that falls to an end along a power",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .at = at,
};
