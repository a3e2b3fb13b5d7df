/* Sparse sigmoid: see ops/sparse_sigmoid.c. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    return vd_min(vd_set(1), vd_max(vd_zero(), (x + 1) / 2));
}

static inline vd slope(NO_ARGS, vd y)
{
    const vd inside = vd_choose(vd_greater(vd_set(1), y), vd_set(0.5), vd_zero());
    return vd_choose(vd_greater(y, vd_zero()), inside, vd_zero());
}

DOUBLE_KERNEL(sparse_sigmoid, value, slope, c->out[0]);
