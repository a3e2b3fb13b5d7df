/* Elu: see ops/elu.c. */
#include "ops/x86/_double.h"

static inline vd value(const keel_alpha_args *a, vd x)
{
    return vd_choose(vd_greater(vd_zero(), x), a->alpha * vd_expm1(x), x);
}

static inline vd slope(const keel_alpha_args *a, vd y)
{
    return vd_choose(vd_greater(y, vd_zero()), vd_set(1), y + a->alpha);
}

DOUBLE_KERNEL(elu, value, slope, c->out[0]);
