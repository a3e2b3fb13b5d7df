/* Adding up the parts of one tile's gradient: divided once, regularised, checked. */
#ifndef KEEL_TRAIN_REDUCE_H
#define KEEL_TRAIN_REDUCE_H
#include "graph/gradients.h"

typedef struct keel_reduction_of {
    int n_part;
    keel_gradient_part *part; /* [n_part] of the tile; the result goes into the first */
    const void *w;            /* masters of the tile */
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
