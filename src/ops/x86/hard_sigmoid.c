/* Hard sigmoid: see ops/hard_sigmoid.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    return vd_min(vd_set(1), vd_max(vd_zero(), (x + 3) / 6));
}

static inline vd slope(NO_ARGS, vd y)
{
    const vd inside = vd_choose(vd_greater(vd_set(1), y), vd_set(1.0 / 6), vd_zero());
    return vd_choose(vd_greater(y, vd_zero()), inside, vd_zero());
}

DOUBLE_KERNEL(hard_sigmoid, value, slope, c->out[0]);
