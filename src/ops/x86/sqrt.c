/* y = sqrt(x), 8 or 16 elements at a time. */
#include "ops/x86/_pointwise.h"

static inline vf value(const void *args __attribute__((unused)), vf x)
{
    return vf_sqrt(x);
}

static inline vf slope(const void *args __attribute__((unused)), vf y)
{
    return vf_div(vf_set(0.5f), y);
}

POINTWISE_VECTOR(value, slope, c->out[0])

POINTWISE_KERNEL(sqrt);
