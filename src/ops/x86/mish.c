/* Mish: see ops/mish.c. */
#include "ops/x86/_double.h"

/* With n = exp(x) and w = n (n + 2): tanh(softplus(x)) = w / (w + 2), in which nothing cancels. */
static inline vd value(NO_ARGS, vd x)
{
    const vd n = vd_exp(vd_min(vd_set(40), x)), w = n * (n + 2);
    return x * (w / (w + 2));
}

static inline vd slope(NO_ARGS, vd x)
{
    const vd n = vd_exp(vd_min(vd_set(40), x)), w = n * (n + 2), r = 1 / (w + 2);
    return w * r + 4 * vd_min(vd_set(40), x) * (n * (1 + n)) * (r * r);
}

DOUBLE_KERNEL(mish, value, slope, c->in[0]);
