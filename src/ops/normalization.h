/* The arguments of ops/normalization.c. */
#ifndef KEEL_OPS_NORMALIZATION_H
#define KEEL_OPS_NORMALIZATION_H
#include "ops/op.h"

/* mean and variance [elements of `over`] are constants, the layer's, which outlives the graph;
 * NULL: they are weights 0 and 1. */
typedef struct keel_normalization_args {
    bool invert;
    keel_shape over; /* as a row, with 1 for each dim along which they are one number */
    const double *mean, *variance;
} keel_normalization_args;

#endif
