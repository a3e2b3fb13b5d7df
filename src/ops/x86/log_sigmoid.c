/* Logarithm of sigmoid: see ops/log_sigmoid.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    return -vd_softplus(-x);
}

static inline vd slope(NO_ARGS, vd y)
{
    return -vd_expm1(y);
}

DOUBLE_KERNEL(log_sigmoid, value, slope, c->out[0]);
