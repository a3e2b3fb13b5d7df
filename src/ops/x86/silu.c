/* y = x sigmoid(x), 8 or 16 elements at a time. */
#include "ops/x86/_pointwise.h"

static inline vf value(const void *args __attribute__((unused)), vf x)
{
    return vf_mul(x, logistic(x));
}

static inline vf slope(const void *args __attribute__((unused)), vf x)
{
    const vf one = vf_set(1), s = logistic(x);
    return vf_mul(s, vf_fma(x, vf_sub(one, s), one));
}

POINTWISE_VECTOR(value, slope, c->in[0])

POINTWISE_KERNEL(silu);
