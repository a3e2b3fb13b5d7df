/* Hard tanh: see ops/hard_tanh.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    return vd_min(vd_set(1), vd_max(vd_set(-1), x));
}

static inline vd slope(NO_ARGS, vd x)
{
    const vd most = vd_set(1 + 0x1p-30); /* below it no float is greater than 1 */
    return vd_choose(vd_greater(most, vd_abs(x)), vd_set(1), vd_zero());
}

DOUBLE_KERNEL(hard_tanh, value, slope, c->in[0]);
