/* The arguments of the op erase: a rectangle of each image is filled. */
#ifndef KEEL_OPS_ERASE_H
#define KEEL_OPS_ERASE_H
#include "ops/draws.h"

typedef struct keel_erase_args {
    /* [0] of draws 0 and 1: squares of the parts of width and height that it takes; [1] of 2 and 3:
     * where it begins, across and down, as parts of the places it can begin at; [2] of 4, [3] of 5:
     * erased where 5 is below 4 */
    keel_range range[4];
    keel_range values; /* of the images */
    int n_fill; /* 0: normal draws times values.high, clipped; 1: fill[0]; else one a channel */
    double fill[3];
} keel_erase_args;

#endif
