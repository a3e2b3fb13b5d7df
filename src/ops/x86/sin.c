/* Sine: see ops/sin.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    return vd_choose(vd_greater(vd_abs(x), vd_zero()), vd_sine(x, 0), x); /* -0 stays */
}

static inline vd slope(NO_ARGS, vd x)
{
    return vd_sine(x, 1);
}

DOUBLE_KERNEL(sin, value, slope, c->in[0]);
