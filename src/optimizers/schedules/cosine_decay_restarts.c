/* Half cosines one after another, each t_mul times as long as the one before, and m_mul times as
 * high. Which one a step is in follows from a logarithm, in Keras's order of operations. */
#include "optimizers/schedules/rate.h"
#include <math.h>

typedef struct args_t {
    double initial_learning_rate, first_decay_steps, t_mul, m_mul, alpha;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, initial_learning_rate, NULL, -1e30, 1e30, "the rate at step 0"),
    KEEL_FLOAT(args_t, first_decay_steps, NULL, 1e-30, 1e30, "steps of the first one"),
    KEEL_FLOAT(args_t, t_mul, "2.0", 1e-30, 1e30, "length of one over that before it"),
    KEEL_FLOAT(args_t, m_mul, "1.0", 0, 1e30, "first rate of one over that before it"),
    KEEL_FLOAT(args_t, alpha, "0.0", -1e30, 1e30, "the last rate over the first"),
    KEEL_IGNORE("name", "of the schedule"),
    { 0 },
};

static double at(const void *args, int64_t step)
{
    const args_t *a = args;
    const float t = (float)a->t_mul, pi = 3.14159265358979323846f;
    float part = (float)step / (float)a->first_decay_steps, restart;
    if (t == 1) {
        restart = floorf(part);
        part -= restart;
    } else {
        const float x = 1 - part * (1 - t);
        const float logs = logf(x) / logf(t);
        restart = floorf(logs);
        const float length = powf(t, restart);
        part = (part - (1 - length) / (1 - t)) / length;
    }
    const float wave = cosf(pi * part);
    const float high = 0.5f * powf((float)a->m_mul, restart) * (1 + wave);
    return (float)a->initial_learning_rate * ((float)(1 - a->alpha) * high + (float)a->alpha);
}

const keel_rate keel_rate_cosine_decay_restarts = {
    .type = {
        .name = "CosineDecayRestarts",
        .module = "keras.optimizers.schedules",
        .help = "a rate that falls along half a cosine, again and again",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .at = at,
};
