/* Gelu, both forms: see ops/gelu.c. */
#include "ops/x86/_double.h"

#define ROOT  0.79788456080286535588 /* sqrt(2 / pi) */
#define CUBIC 0.044715

static inline vd value(const keel_gelu_args *a, vd x)
{
    vd density;
    if (!a->approximate) return x * vd_normal(x, &density);
    return x / (1 + vd_exp(-2 * ROOT * (x + CUBIC * x * x * x)));
}

static inline vd slope(const keel_gelu_args *a, vd x)
{
    vd density;
    if (!a->approximate) {
        const vd below = vd_normal(x, &density);
        return below + x * density * (0.5 * M_2_SQRTPI * M_SQRT1_2);
    }
    const vd e = vd_exp(vd_min(vd_set(700), -2 * ROOT * (x + CUBIC * x * x * x))), s = 1 / (1 + e);
    return s + x * s * (e * s) * (2 * ROOT * (1 + 3 * CUBIC * x * x));
}

DOUBLE_KERNEL(gelu, value, slope, c->in[0]);
