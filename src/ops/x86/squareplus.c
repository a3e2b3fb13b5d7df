/* Squareplus: see ops/squareplus.c. Far below 0 a sum has lost digits that a float shows; only
 * there is the form without it worth its division. */
#include "ops/x86/_double.h"

enum { LOST = 1000000 }; /* times the sum: what is left has ten digits */

static inline vd value(const keel_squareplus_args *a, vd x)
{
    const vd root = vd_sqrt(x * x + a->b), sum = x + root;
    if (vd_all(vd_greater(sum * LOST, root))) return 0.5 * sum;
    const vd below = vd_choose(vd_greater(x, vd_set(-INFINITY)), a->b / (root - x), sum);
    return 0.5 * vd_choose(vd_greater(vd_zero(), x), below, sum);
}

static inline vd slope(const keel_squareplus_args *a, vd x)
{
    const vd root = vd_sqrt(x * x + a->b), sum = 1 + x / root;
    if (vd_all(vd_greater(sum * LOST, vd_set(1)))) return 0.5 * sum;
    /* at least so much that 0 / 0, of x and b 0, is a half */
    const vd some = vd_max(vd_set(1e-300), root);
    const vdm below = vd_greater(vd_zero(), x);
    return 0.5 * vd_choose(below, vd_set(a->b), x + some) /
           vd_choose(below, some * (some - x), some);
}

DOUBLE_KERNEL(squareplus, value, slope, c->in[0]);
