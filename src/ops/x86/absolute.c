/* y = |x|, 8 or 16 elements at a time; the slope at 0 is 0. */
#include "ops/x86/_pointwise.h"

static inline vf value(const void *args __attribute__((unused)), vf x)
{
    return vf_and(x, (vf)vi_set(0x7fffffff));
}

static inline vf slope(const void *args __attribute__((unused)), vf x)
{
    const vf below = vf_choose(vf_greater(vf_zero(), x), vf_set(-1), vf_zero());
    return vf_choose(vf_greater(x, vf_zero()), vf_set(1), below);
}

POINTWISE_VECTOR(value, slope, c->in[0])

POINTWISE_KERNEL(absolute);
