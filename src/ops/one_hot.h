/* The args of ops/one_hot.c. */
#ifndef KEEL_OPS_ONE_HOT_H
#define KEEL_OPS_ONE_HOT_H
#include <stdint.h>

typedef struct keel_one_hot_args {
    int64_t n; /* places for each number */
} keel_one_hot_args;

#endif
