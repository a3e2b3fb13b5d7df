/* A move of weights by an optimizer, of one pass and each element by itself: what a device does
 * where the weights and what the optimizer keeps for them are (device.h). The rules are in
 * optimizers/rules.h, for the host and for devices. */
#ifndef KEEL_DEVICE_MOVE_H
#define KEEL_DEVICE_MOVE_H
#include "tensor/dtype.h"
#include <stdint.h>

enum { KEEL_MOVE_SLOTS = 3 };

/* How values are clipped; a NaN stays one. A macro, since compilers make the shortest loop of it.
 */
#define KEEL_CLAMP(x, bound) ((x) > (bound) ? (bound) : (x) < -(bound) ? -(bound) : (x))

typedef enum keel_rule {
    KEEL_RULE_PLAIN,
    KEEL_RULE_MOMENTUM,
    KEEL_RULE_MOMENTUM_ONLY, /* neither decay nor a clip */
    KEEL_RULE_NESTEROV,
    KEEL_RULE_ADAM,
    KEEL_RULE_AMSGRAD,
    KEEL_RULES
} keel_rule;

/* Rounded to the type of the weights where they are used. */
typedef struct keel_rule_numbers {
    double rate, decay, scale, clip; /* as those of keel_update */
    double momentum;
    double alpha, one_less_beta_1, one_less_beta_2, epsilon; /* Adam's */
} keel_rule_numbers;

typedef struct keel_device_move {
    keel_rule rule;
    keel_dtype real;
    int64_t count;
    void *w;
    const void *g;
    void *slot[KEEL_MOVE_SLOTS]; /* as many as the rule has */
    keel_rule_numbers number;
} keel_device_move;

static inline int keel_rule_slots(keel_rule rule)
{
    static const int slots[KEEL_RULES] = { 0, 1, 1, 1, 2, 3 };
    return slots[rule];
}

#endif
