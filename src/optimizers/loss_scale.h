/* Keras's LossScaleOptimizer: what it is given beside the optimizer that it wraps. The loss is
 * multiplied by a scale, so that small gradients do not vanish in float16, and gradients are
 * divided by it again. train/loss_scale.h moves the scale. */
#ifndef KEEL_OPTIMIZERS_LOSS_SCALE_H
#define KEEL_OPTIMIZERS_LOSS_SCALE_H
#include "base/field.h"

typedef struct keel_loss_scale_args {
    double initial_scale;
    int64_t dynamic_growth_steps; /* so many good steps in a row double the scale */
} keel_loss_scale_args;

extern const keel_type keel_loss_scale_type;

/* Finds only the type above. */
const keel_type *keel_loss_scale_find(const char *name);

#endif
