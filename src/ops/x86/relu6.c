/* y = min(max(x, 0), 6), 8 or 16 elements at a time. */
#include "ops/x86/_pointwise.h"

static inline vf value(const void *args __attribute__((unused)), vf x)
{
    return vf_min(vf_set(6), vf_max(vf_zero(), x));
}

static inline vf slope(const void *args __attribute__((unused)), vf y)
{
    const vf below = vf_choose(vf_greater(vf_set(6), y), vf_set(1), vf_zero());
    return vf_choose(vf_greater(y, vf_zero()), below, vf_zero());
}

POINTWISE_VECTOR(value, slope, c->out[0])

POINTWISE_KERNEL(relu6);
