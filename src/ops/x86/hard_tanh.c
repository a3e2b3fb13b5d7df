/* Hard tanh: see ops/hard_tanh.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    return vd_min(vd_set(1), vd_max(vd_set(-1), x));
}

static inline vd slope(NO_ARGS, vd y)
{
    const vd inside = vd_choose(vd_greater(vd_set(1), y), vd_set(1), vd_zero());
    return vd_choose(vd_greater(y, vd_set(-1)), inside, vd_zero());
}

DOUBLE_KERNEL(hard_tanh, value, slope, c->out[0]);
