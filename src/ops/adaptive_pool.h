/* The arguments of ops/adaptive_pool.c. */
#ifndef KEEL_OPS_ADAPTIVE_POOL_H
#define KEEL_OPS_ADAPTIVE_POOL_H
#include "ops/op.h"

typedef struct keel_adaptive_pool_args {
    int64_t axis, size; /* of a row, and how long it becomes */
    bool largest;       /* else the mean */
} keel_adaptive_pool_args;

#endif
