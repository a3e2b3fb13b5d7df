/* y = x^2, 8 or 16 elements at a time. */
#include "ops/x86/_pointwise.h"

static inline vf value(const void *args __attribute__((unused)), vf x)
{
    return vf_mul(x, x);
}

static inline vf slope(const void *args __attribute__((unused)), vf x)
{
    return vf_add(x, x);
}

POINTWISE_VECTOR(value, slope, c->in[0])

POINTWISE_KERNEL(square);
