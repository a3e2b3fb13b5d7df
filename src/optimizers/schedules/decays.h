/* What schedules share whose rate falls by decay_rate over decay_steps steps, or at once at their
 * end. */
#ifndef KEEL_OPTIMIZERS_SCHEDULES_DECAYS_H
#define KEEL_OPTIMIZERS_SCHEDULES_DECAYS_H
#include "optimizers/schedules/rate.h"
#include <math.h>

typedef struct keel_decays {
    double initial_learning_rate, decay_steps, decay_rate;
    bool staircase;
} keel_decays;

/* rate: help of decay_rate. */
#define KEEL_DECAYS_FIELDS(rate)                                                                   \
    KEEL_FLOAT(keel_decays, initial_learning_rate, NULL, -1e30, 1e30, "the rate at step 0"),       \
        KEEL_FLOAT(keel_decays, decay_steps, NULL, 1e-30, 1e30, "how many steps the decay takes"), \
        KEEL_FLOAT(keel_decays, decay_rate, NULL, 0, 1e30, rate),                                  \
        KEEL_BOOL(keel_decays, staircase, "false",                                                 \
                  "the rate changes every decay_steps steps alone"),                               \
        KEEL_IGNORE("name", "of the schedule")

/* The number of decays before the step. */
static inline float keel_decays_before(const keel_decays *a, int64_t step)
{
    const float decays = (float)step / (float)a->decay_steps;
    return a->staircase ? floorf(decays) : decays;
}

#endif
