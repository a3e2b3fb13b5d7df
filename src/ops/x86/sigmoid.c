/* y = 1 / (1 + exp(-x)), 8 or 16 elements at a time. */
#include "ops/x86/_pointwise.h"

static inline vf value(const void *args __attribute__((unused)), vf x)
{
    return logistic(x);
}

static inline vf slope(const void *args __attribute__((unused)), vf y)
{
    return vf_mul(y, vf_sub(vf_set(1), y));
}

POINTWISE_VECTOR(value, slope, c->out[0])

POINTWISE_KERNEL(sigmoid);
