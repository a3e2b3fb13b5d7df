/* A schedule of the learning rate: the rate as a function of the number of steps done. */
#ifndef KEEL_OPTIMIZERS_SCHEDULES_RATE_H
#define KEEL_OPTIMIZERS_SCHEDULES_RATE_H
#include "base/field.h"

typedef struct keel_rate {
    keel_type type;
    keel_status (*check)(const void *args); /* checks arguments together; NULL: nothing */
    /* step: 0 for the first. Computed in float32, as in Keras, whatever type the model has. */
    double (*at)(const void *args, int64_t step);
} keel_rate;

extern const keel_rate *const keel_rates[]; /* generated; ends with NULL */
const keel_type *keel_rate_find(const char *name);

#endif
