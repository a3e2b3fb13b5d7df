/* The arguments of ops/numbers.c. */
#ifndef KEEL_OPS_NUMBERS_H
#define KEEL_OPS_NUMBERS_H
#include "ops/op.h"

enum {
    KEEL_NUMBERS_MAX = 256,  /* of args that are a plain struct */
    KEEL_ARRAY_MAX = 1 << 20 /* of args with room behind them: keel_numbers_bytes */
};

typedef struct keel_numbers_args {
    keel_shape shape;
    double at[KEEL_NUMBERS_MAX]; /* the numbers of this shape; more go on behind the struct */
} keel_numbers_args;

static inline size_t keel_numbers_bytes(const keel_shape *shape)
{
    const int64_t count = keel_shape_count(shape), more = count - KEEL_NUMBERS_MAX;
    return sizeof(keel_numbers_args) + (more > 0 ? (size_t)more * sizeof(double) : 0);
}

#endif
