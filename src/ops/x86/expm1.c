/* Exponential minus 1: see ops/expm1.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    return vd_choose(vd_greater(vd_abs(x), vd_zero()), vd_expm1(x), x); /* -0 stays */
}

static inline vd slope(NO_ARGS, vd x)
{
    return vd_exp(x);
}

DOUBLE_KERNEL(expm1, value, slope, c->in[0]);
