/* Functions of one vector, and kernels of ops that treat every element alike.
 *
 * exp(x) = 2^n exp(r) with n = round(x / ln 2), |r| <= ln 2 / 2, and a polynomial of degree 6 for
 * exp(r): its relative error is below 2^-23; below -104 it is 0, and by AVX2 below -87. All other
 * functions use exp of numbers that are not positive, so nothing overflows. tanh near 0: the
 * polynomial of Cephes (Moshier 1992). */
#ifndef KEEL_OPS_X86_POINTWISE_H
#define KEEL_OPS_X86_POINTWISE_H
#include "ops/x86/_vector.h"
#include <math.h>

static inline vf exponential(vf x) /* x <= 0, or NaN, which stays NaN */
{
    static const float c[] = { 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1, 1 };
    const vf at = vf_max(vf_set(-104), x), n = vf_round(vf_mul(at, vf_set(1.44269504f)));
    vf r = vf_fma(n, vf_set(-0.693359375f), at); /* ln 2 in two parts */
    r = vf_fma(n, vf_set(2.12194440e-4f), r);
    vf e = vf_set(c[0]);
    for (int i = 1; i < 7; i++) e = vf_fma(e, r, vf_set(c[i]));
    return vf_scale(e, n);
}

static inline vf size_of(vf x)
{
    return vf_max(vf_sub(vf_zero(), x), x);
}

static inline vf less_size(vf x) /* -|x| */
{
    return vf_or(x, vf_set(-0.0f));
}

/* 1 / (1 + exp(-x)) */
static inline vf logistic(vf x)
{
    const vf one = vf_set(1), e = exponential(less_size(x));
    return vf_ratio(vf_choose(vf_greater(vf_zero(), x), e, one), vf_add(one, e));
}

static inline vf tangent(vf x)
{
    static const float c[] = { -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                               1.33314422036e-1f, -3.33332819422e-1f };
    const vf one = vf_set(1), less = less_size(x), z = vf_mul(x, x);
    vf near = vf_set(c[0]);
    for (int i = 1; i < 5; i++) near = vf_fma(near, z, vf_set(c[i]));
    near = vf_fma(vf_mul(near, z), x, x);
    const vf e = exponential(vf_add(less, less));
    const vf far = vf_ratio(vf_sub(one, e), vf_add(one, e));
    const vf sign = vf_and(x, vf_set(-0.0f)); /* near has it, but of 0 */
    return vf_or(vf_choose(vf_greater(vf_set(-0.625f), less), far, near), sign);
}

/* Makes forward and backward from value(args, x) and slope(args, v), where v is c->out[0] or
 * c->in[0], for values stored in float32 and in bfloat16; y may be x, and dx may be dy. */
#define POINTWISE_VECTOR(value, slope, read)                                                       \
    POINTWISE_VECTOR_OF(float, f32, value, slope, read)                                            \
    POINTWISE_VECTOR_OF(keel_bf16, bf16, value, slope, read)

#define POINTWISE_VECTOR_OF(type, suffix, value, slope, read)                                      \
    static void forward_##suffix(const keel_call *c)                                               \
    {                                                                                              \
        const int64_t count = c->rows * keel_row_count(&c->node->out[0]);                          \
        const void *args = c->node->args;                                                          \
        const type *x = c->in[0];                                                                  \
        type *y = c->out[0];                                                                       \
        VECTOR_EACH(i, count, m, vx_store_some(m, y + i, value(args, vx_load_some(m, x + i))));    \
    }                                                                                              \
    static void backward_##suffix(const keel_call *c)                                              \
    {                                                                                              \
        const int64_t count = c->rows * keel_row_count(&c->node->out[0]);                          \
        const void *args = c->node->args;                                                          \
        const type *at = read, *dy = c->out_grad[0];                                               \
        type *dx = c->in_grad[0];                                                                  \
        if (!dx) return;                                                                           \
        VECTOR_EACH(i, count, m, {                                                                 \
            const vf k = slope(args, vx_load_some(m, at + i));                                     \
            vf g = vf_mul(k, vx_load_some(m, dy + i));                                             \
            if (c->in_adds[0]) g = vf_add(g, vx_load_some(m, dx + i));                             \
            vx_store_some(m, dx + i, g);                                                           \
        });                                                                                        \
    }

#define POINTWISE_KERNEL(stem) VECTOR_BOTH(stem, vector_prepare)

#endif
