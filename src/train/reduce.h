/* Adding the workers' gradients of one tile: divided once, regularised, checked. */
#ifndef KEEL_TRAIN_REDUCE_H
#define KEEL_TRAIN_REDUCE_H
#include "tensor/dtype.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct keel_reduction_of {
    int n_source;
    void *const
        *source;   /* [n_source] gradients of the tile, in worker order; the result goes into [0] */
    const void *w; /* masters of the tile */
    int64_t count;
    double scale; /* one over the divisor */
    double l1, l2;
    bool wants_norm;
    double norm;        /* out: sum of squares, in order, if wanted */
    double regulariser; /* out: l1 sum|w| + l2 sum w^2 */
} keel_reduction_of;

/* false: an element is not finite. */
bool keel_reduce(keel_dtype real, keel_reduction_of *r);

#endif
