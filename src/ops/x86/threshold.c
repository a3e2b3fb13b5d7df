/* Threshold: see ops/threshold.c. */
#include "ops/x86/_double.h"

static inline vd value(const keel_threshold_args *a, vd x)
{
    return vd_choose(vd_greater(x, vd_set(a->threshold)), x, vd_set(a->value));
}

static inline vd slope(const keel_threshold_args *a, vd x)
{
    return vd_choose(vd_greater(x, vd_set(a->threshold)), vd_set(1), vd_zero());
}

DOUBLE_KERNEL(threshold, value, slope, c->in[0]);
