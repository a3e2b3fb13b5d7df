/* Reduces the parts of one tile's gradient: adds them, divides once, adds the regulariser, checks
 * for finite numbers. */
#ifndef KEEL_TRAIN_REDUCE_H
#define KEEL_TRAIN_REDUCE_H
#include "graph/gradients.h"
#include "tensor/penalty.h"

/* Of a gradient: one of each process, or of each lane of this one. */
enum { KEEL_PARTS_MAX = KEEL_PROCESSES_MAX };
_Static_assert((int)KEEL_PARTS_MAX >= (int)KEEL_LANES_MAX, "lanes leave parts, too");

typedef struct keel_reduction_of {
    int n_part;
    keel_gradient_part *part; /* [n_part] of the tile; the first receives the result */
    const void *w;            /* master weights of the tile */
    int64_t count;
    double scale; /* 1 / divisor */
    keel_penalty penalty;
    const void *orthogonal; /* the gradient of that part of the penalty; NULL: none */
    bool wants_norm;
    double norm;        /* output, if requested: sum of squares, as keel_device_measure adds it */
    double regulariser; /* output: l1 sum|w| + l2 sum w^2 of the tile */
} keel_reduction_of;

/* l1 sum|w| + l2 sum w^2 of a tile. */
double keel_reduce_penalty(keel_dtype real, const keel_penalty *p, const void *w, int64_t count);

/* False: an element is not finite. */
bool keel_reduce_tile(keel_dtype real, keel_reduction_of *r);

#endif
