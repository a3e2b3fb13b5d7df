/* The arguments of the op clahe: contrast limited adaptive histogram equalization. */
#ifndef KEEL_OPS_CLAHE_H
#define KEEL_OPS_CLAHE_H
#include "ops/draws.h"

typedef struct keel_clahe_args {
    int64_t grid[2];   /* tiles down and across */
    double clip_limit; /* a bin of a tile counts at most so many times the mean; <= 0: all */
    keel_range values; /* of the images */
} keel_clahe_args;

#endif
