/* Exponential: see ops/exponential.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    return vd_exp(x);
}

static inline vd slope(NO_ARGS, vd y)
{
    return y;
}

DOUBLE_KERNEL(exponential, value, slope, c->out[0]);
