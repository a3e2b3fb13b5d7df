/* Hard shrink: see ops/hard_shrink.c. */
#include "ops/x86/_double.h"

static inline vd value(const keel_threshold_args *a, vd x)
{
    return vd_choose(vd_greater(vd_abs(x), vd_set(a->threshold)), x, vd_zero());
}

static inline vd slope(NO_ARGS, vd y)
{
    return vd_choose(vd_greater(vd_abs(y), vd_zero()), vd_set(1), vd_zero());
}

DOUBLE_KERNEL(hard_shrink, value, slope, c->out[0]);
