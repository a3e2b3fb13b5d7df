/* Logarithm: see ops/log.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    return vd_log(x);
}

static inline vd slope(NO_ARGS, vd x)
{
    return 1 / x;
}

DOUBLE_KERNEL(log, value, slope, c->in[0]);
