/* What layers add to the loss: activity regularizers, and terms of one's own. */
#ifndef KEEL_LAYERS_ACTIVITY_H
#define KEEL_LAYERS_ACTIVITY_H
#include "ops/op.h"

/* A term of the loss, from the values x of a row; factors of 0 add nothing. */
typedef struct keel_activity {
    double l1, l2; /* l1 * sum |x| + l2 * sum x^2 */
    double mean;   /* mean * (sum x) / (their number) */
} keel_activity;

extern const keel_op keel_activity_op;

#endif
