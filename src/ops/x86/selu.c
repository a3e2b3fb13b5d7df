/* Selu: see ops/selu.c. */
#include "ops/x86/_double.h"

#define SCALE   1.05070098735548049342
#define ALPHA   1.67326324235437728482
#define BELOW_0 (-0x1p-1000) /* of float32, y > BELOW_0 is y >= 0, and false for NaN */

static inline vd value(NO_ARGS, vd x)
{
    return SCALE * vd_choose(vd_greater(vd_zero(), x), ALPHA * vd_expm1(x), x);
}

static inline vd slope(NO_ARGS, vd y)
{
    return vd_choose(vd_greater(y, vd_set(BELOW_0)), vd_set(SCALE), y + SCALE * ALPHA);
}

DOUBLE_KERNEL(selu, value, slope, c->out[0]);
