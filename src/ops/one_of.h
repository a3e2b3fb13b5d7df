/* The arguments of the op one_of: each image goes through one of several ops, drawn for its row. */
#ifndef KEEL_OPS_ONE_OF_H
#define KEEL_OPS_ONE_OF_H
#include "ops/equalize.h"
#include "ops/recolor.h"
#include "ops/smooth.h"
#include "ops/warp.h"

enum { KEEL_ONE_OF_MAX = 12 };

typedef struct keel_one_of_choice {
    const struct keel_op *op; /* warp, recolor, smooth or equalize; NULL: the image stays */
    union {
        keel_warp_args warp;
        keel_recolor_args recolor;
        keel_smooth_args smooth;
        keel_equalize_args equalize;
    } args; /* of the op; the numbers of its draws are not those of others */
} keel_one_of_choice;

typedef struct keel_one_of_args {
    int n;
    keel_range which; /* of draw `first`, of a row, whose whole part is the choice: 0 to n */
    uint32_t first;
    keel_one_of_choice choice[KEEL_ONE_OF_MAX];
} keel_one_of_args;

#endif
