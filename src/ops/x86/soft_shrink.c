/* Soft shrink: see ops/soft_shrink.c. */
#include "ops/x86/_double.h"

static inline vd value(const keel_threshold_args *a, vd x)
{
    const vd below = vd_choose(vd_greater(vd_set(-a->threshold), x), x + a->threshold, vd_zero());
    return vd_choose(vd_greater(x, vd_set(a->threshold)), x - a->threshold, below);
}

static inline vd slope(NO_ARGS, vd y)
{
    return vd_choose(vd_greater(vd_abs(y), vd_zero()), vd_set(1), vd_zero());
}

DOUBLE_KERNEL(soft_shrink, value, slope, c->out[0]);
