/* A schedule of the learning rate: what it is at a step, as a function of the steps done. */
#ifndef KEEL_OPTIMIZERS_SCHEDULES_RATE_H
#define KEEL_OPTIMIZERS_SCHEDULES_RATE_H
#include "base/field.h"

typedef struct keel_rate {
    keel_type type;
    keel_status (*check)(const void *args); /* of arguments against each other; NULL: nothing */
    /* step: 0 for the first. Computed in float32, as Keras does whatever the model's type is. */
    double (*at)(const void *args, int64_t step);
} keel_rate;

extern const keel_rate *const keel_rates[]; /* generated; ends with NULL */
const keel_type *keel_rate_find(const char *name);

#endif
