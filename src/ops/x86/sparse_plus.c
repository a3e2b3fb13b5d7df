/* Sparse plus: see ops/sparse_plus.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    const vd up = vd_max(vd_zero(), x + 1);
    return vd_choose(vd_greater(vd_set(1), x), up * up / 4, x);
}

static inline vd slope(NO_ARGS, vd y)
{
    return vd_choose(vd_greater(vd_set(1), y), vd_sqrt(y), vd_set(1));
}

DOUBLE_KERNEL(sparse_plus, value, slope, c->out[0]);
