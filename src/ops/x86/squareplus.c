/* Squareplus: see ops/squareplus.c. */
#include "ops/x86/_double.h"

static inline vd value(const keel_squareplus_args *a, vd x)
{
    const vd root = vd_sqrt(x * x + a->b);
    return 0.5 * (x + root);
}

static inline vd slope(const keel_squareplus_args *a, vd x)
{
    const vd root = vd_sqrt(x * x + a->b);
    return vd_choose(vd_greater(root, vd_zero()), 0.5 * (1 + x / root), vd_set(0.5));
}

DOUBLE_KERNEL(squareplus, value, slope, c->in[0]);
