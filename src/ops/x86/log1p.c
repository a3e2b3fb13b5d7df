/* Logarithm of 1 + x: see ops/log1p.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    const vd near = vd_log1p(vd_min(vd_set(1), vd_max(vd_set(-0.5), x)));
    const vdm is_near = vd_greater(vd_set(0.75), vd_abs(x - 0.25)); /* from -0.5 to 1 */
    return vd_choose(is_near, near, vd_log(1 + x));
}

static inline vd slope(NO_ARGS, vd x)
{
    return 1 / (1 + x);
}

DOUBLE_KERNEL(log1p, value, slope, c->in[0]);
