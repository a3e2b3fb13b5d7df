/* Tanh shrink: see ops/tanh_shrink.c. Near 0 by its series, where x and tanh(x) would cancel. */
#include "ops/x86/_double.h"

static inline vd value(NO_ARGS, vd x)
{
    static const double c[] = { -18888466084.0 / 194896477400625,
                                443861162.0 / 1856156927625,
                                -6404582.0 / 10854718875,
                                929569.0 / 638512875,
                                -21844.0 / 6081075,
                                1382.0 / 155925,
                                -62.0 / 2835,
                                17.0 / 315,
                                -2.0 / 15,
                                1.0 / 3 };
    const vd z = x * x;
    vd near = vd_set(c[0]);
    for (int i = 1; i < 10; i++) near = near * z + c[i];
    return vd_choose(vd_greater(vd_set(0.5), vd_abs(x)), x * z * near, x - vd_tanh(x));
}

static inline vd slope(NO_ARGS, vd x)
{
    const vd t = vd_tanh(x);
    return t * t;
}

DOUBLE_KERNEL(tanh_shrink, value, slope, c->in[0]);
