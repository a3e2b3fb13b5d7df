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

/* A function of the program as a schedule. No file has it, and no text names it. */
typedef struct keel_rate_call {
    double (*rate)(void *context, int64_t step);
    void *context;
} keel_rate_call;
extern const keel_rate keel_rate_function;

/* A schedule as it is written in Python: "CosineDecay(0.1, 1000, alpha=0.01)". Arguments without a
 * name are those of the table in its order, which is Keras's. On failure *out is unchanged.
 *
 * KEEL_EARG: no such schedule or argument, or one that does not fit; the text says which. */
keel_status keel_rate_parse(keel_object *out, const char *text);

#endif
