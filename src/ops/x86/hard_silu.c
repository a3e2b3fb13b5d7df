/* Hard silu: see ops/hard_silu.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    const vd above = vd_choose(vd_greater(vd_set(3), x), x * (x + 3) / 6, x);
    return vd_choose(vd_greater(x, vd_set(-3)), above, x * 0.0);
}

static inline vd slope(NO_ARGS, vd x)
{
    const vd above = vd_choose(vd_greater(vd_set(3), x), (2 * x + 3) / 6, vd_set(1));
    return vd_choose(vd_greater(x, vd_set(-3)), above,
                     vd_choose(vd_greater(vd_set(-2), x), vd_zero(), x));
}

DOUBLE_KERNEL(hard_silu, value, slope, c->in[0]);
