/* The args of ops/pad.c. */
#ifndef KEEL_OPS_PAD_H
#define KEEL_OPS_PAD_H
#include "tensor/shape.h"

typedef struct keel_pad_args {
    int64_t before[KEEL_RANK_MAX], behind[KEEL_RANK_MAX]; /* places of each dim of a row */
    double value;
} keel_pad_args;

#endif
