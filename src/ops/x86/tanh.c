/* y = tanh(x), 8 or 16 elements at a time. */
#include "ops/x86/_pointwise.h"

static inline vf value(const void *args __attribute__((unused)), vf x)
{
    return tangent(x);
}

static inline vf slope(const void *args __attribute__((unused)), vf y)
{
    return vf_sub(vf_set(1), vf_mul(y, y));
}

POINTWISE_VECTOR(value, slope, c->out[0])

POINTWISE_KERNEL(tanh);
