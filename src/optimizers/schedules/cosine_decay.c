/* The rate falls along half a cosine to alpha times its value. With a warmup_target, it first rises
 * linearly to the target in warmup_steps. */
#include "optimizers/schedules/rate.h"
#include <math.h>

typedef struct args_t {
    double initial_learning_rate, decay_steps, alpha, warmup_target, warmup_steps;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, initial_learning_rate, NULL, -1e30, 1e30, "the rate at step 0"),
    KEEL_FLOAT(args_t, decay_steps, NULL, 1e-30, 1e30, "how many steps the decay takes"),
    KEEL_FLOAT(args_t, alpha, "0.0", -1e30, 1e30, "the last rate over the first"),
    KEEL_IGNORE("name", "of the schedule"),
    KEEL_FLOAT(args_t, warmup_target, "null", -1e30, 1e30, "the rate after the warmup"),
    KEEL_FLOAT(args_t, warmup_steps, "0", 0, 1e30, "steps of the warmup"),
    { 0 },
};

static double at(const void *args, int64_t step)
{
    const args_t *a = args;
    const bool warms = !isnan(a->warmup_target);
    const float first = (float)a->initial_learning_rate, all = (float)a->decay_steps;
    const float warmup = warms ? (float)a->warmup_steps : 0;
    const float most = all + warmup, from = warms ? (float)a->warmup_target : first;
    const float pi = 3.14159265358979323846f;
    float done = (float)step;
    if (done > most) done = most;
    if (done < warmup) return (from - first) * (done / warmup) + first;
    const float part = (done - warmup) / all;
    const float wave = cosf(pi * part);
    return from * ((float)(1 - a->alpha) * (0.5f * (1 + wave)) + (float)a->alpha);
}

const keel_rate keel_rate_cosine_decay = {
    .type = {
        .name = "CosineDecay",
        .module = "keras.optimizers.schedules",
        .help = "a rate that falls along half a cosine, after a warmup",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .at = at,
};
