/* y = x for x > 0, else negative_slope x, 8 or 16 elements at a time. */
#include "ops/x86/_pointwise.h"
#include "ops/args.h"

static inline vf slope(const void *args, vf y)
{
    const keel_leaky_relu_args *a = args;
    return vf_choose(vf_greater(y, vf_zero()), vf_set(1), vf_set((float)a->negative_slope));
}

static inline vf value(const void *args, vf x)
{
    return vf_mul(x, slope(args, x));
}

POINTWISE_VECTOR(value, slope, c->out[0])

POINTWISE_KERNEL(leaky_relu);
