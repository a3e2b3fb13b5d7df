/* Softsign: see ops/softsign.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    return x / (1 + vd_abs(x));
}

static inline vd slope(NO_ARGS, vd x)
{
    const vd size = 1 + vd_abs(x);
    return 1 / (size * size);
}

DOUBLE_KERNEL(softsign, value, slope, c->in[0]);
