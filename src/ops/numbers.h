/* The arguments of ops/numbers.c. */
#ifndef KEEL_OPS_NUMBERS_H
#define KEEL_OPS_NUMBERS_H
#include "ops/op.h"

enum { KEEL_NUMBERS_MAX = 256 }; /* they are in the args, which every node copies */

typedef struct keel_numbers_args {
    keel_shape shape;
    double at[KEEL_NUMBERS_MAX]; /* the numbers of this shape */
} keel_numbers_args;

#endif
