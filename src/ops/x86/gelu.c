/* Gelu, both forms: see ops/gelu.c. Where |x| < 4, so almost always, the exact form takes no
 * exponential: P(X <= x) - 1/2 and the slope - 1/2 are x times polynomials in s = x^2 / 8 - 1. Both
 * are within 1e-9, relative, but for the slope near its zero at -0.75, where it is within 1e-12.
 * Other lanes are computed apart, so a lane's result does not depend on the lanes beside it.
 * Coefficients by weighted least squares (Lawson).
 *
 * bfloat16 values have a third of float32's digits, so there single precision is enough: P(X <= -t)
 * is exp(-t^2 / 2) times a polynomial in 1 / (1 + 0.35 t), within 5e-7, relative. */
#include "ops/x86/_double.h"
#include "ops/x86/_pointwise.h"

#define ROOT  0.79788456080286535588 /* sqrt(2 / pi) */
#define CUBIC 0.044715

typedef struct pair { /* the halves of a vector */
    vd low, high;
} pair;

static const double value_terms[] = {
    -1.645242946324288e-07,  1.105364930253927e-06, -4.259062130529401e-06,  1.4485661555596607e-05,
    -4.8167638116325406e-05, 0.0001510652963749859, -0.00043708632958927573, 0.0011614481337722284,
    -0.0028223225520168094,  0.0062369391758394606, -0.01247232211051584,    0.02251815191511323,
    -0.03686932690147973,    0.05593420399274775,   -0.08432144899760594,    0.17594978076495044
};
static const double slope_terms[] = {
    -3.001401722713126e-07, 1.8285949937380225e-06, -6.6414286006555815e-06, 2.325138619898222e-05,
    -8.209527412723109e-05, 0.0002703831329007768,  -0.0008166909530527714,  0.002262723673004002,
    -0.0057152872302722035, 0.013037865153526673,   -0.02657553108770089,    0.04780502446400503,
    -0.07482438896504862,   0.10045823054582055,    -0.11480940903662826,    0.1143892660641303,
    -0.11354897999369636,   0.18325666351001466
};
#define COUNT_OF(a) (int)(sizeof(a) / sizeof(a)[0])

/* 1/2 + x times a polynomial of n terms. n is a constant at each call. */
INLINE pair near(pair x, const double *terms, const int n)
{
    const pair s = { x.low * x.low * 0.125 - 1, x.high * x.high * 0.125 - 1 };
    pair p = { vd_set(terms[0]), vd_set(terms[0]) };
    EACH(i, n - 1) {
        p.low = p.low * s.low + terms[i + 1];
        p.high = p.high * s.high + terms[i + 1];
    }
    return (pair){ p.low * x.low + 0.5, p.high * x.high + 0.5 };
}

static inline vdm is_near(vd x)
{
    return vd_greater(vd_set(4), vd_abs(x));
}

INLINE vd far_normal(vd x, vd near)
{
    vd density;
    return vd_choose(is_near(x), near, vd_normal(x, &density));
}

INLINE vd far_slope(vd x, vd near)
{
    vd density;
    const vd below = vd_normal(x, &density);
    const vd far = below + x * density * (0.5 * M_2_SQRTPI * M_SQRT1_2);
    return vd_choose(is_near(x), near, far);
}

/* Apart from the loops, whose registers they would fill. */
static __attribute__((noinline)) void far_normals(const pair *x, pair *p)
{
    *p = (pair){ far_normal(x->low, p->low), far_normal(x->high, p->high) };
}

static __attribute__((noinline)) void far_slopes(const pair *x, pair *p)
{
    *p = (pair){ far_slope(x->low, p->low), far_slope(x->high, p->high) };
}

INLINE pair exact_value(pair x)
{
    pair p = near(x, value_terms, COUNT_OF(value_terms));
    if (!vd_all(is_near(x.low)) || !vd_all(is_near(x.high))) {
        const pair at = x;
        pair all = p;
        far_normals(&at, &all);
        p = all;
    }
    return (pair){ x.low * p.low, x.high * p.high };
}

INLINE pair exact_slope(pair x)
{
    pair p = near(x, slope_terms, COUNT_OF(slope_terms));
    if (!vd_all(is_near(x.low)) || !vd_all(is_near(x.high))) {
        const pair at = x;
        pair all = p;
        far_slopes(&at, &all);
        p = all;
    }
    return p;
}

/* exp(-2u) of the approximation as a power of 2, of which no more than 2^most: within 1e-9. A power
 * of 1024 is infinite. */
INLINE vd far_side(vd x, double most)
{
    const vd by = x * x * (-2 * ROOT * CUBIC * M_LOG2E) + -2 * ROOT * M_LOG2E;
    const vd t = vd_min(vd_set(most), vd_max(vd_set(-1000), x * by)), n = vd_round(t), f = t - n;
    vd p = vd_set(1.5195854468075254e-05);
    p = p * f + 0.0001546674394612424;
    p = p * f + 0.0013333936520195655;
    p = p * f + 0.009618038153507202;
    p = p * f + 0.05550410363460812;
    p = p * f + 0.24022651066617637;
    p = p * f + 0.693147180706257;
    return (p * f + 1) * vd_power2(n);
}

INLINE vd half_value(vd x)
{
    return x / (1 + far_side(x, 1024));
}

INLINE vd half_slope(vd x)
{
    const vd e = far_side(x, 1000), s = 1 / (1 + e);
    return s + x * s * (e * s) * (2 * ROOT * (1 + 3 * CUBIC * x * x));
}

INLINE pair approximate_value(pair x)
{
    return (pair){ half_value(x.low), half_value(x.high) };
}

INLINE pair approximate_slope(pair x)
{
    return (pair){ half_slope(x.low), half_slope(x.high) };
}

#define RUN(way)                                                                                   \
    static void forward_##way##_f32(const keel_call *c)                                            \
    {                                                                                              \
        const int64_t n = c->rows * keel_row_count(&c->node->out[0]);                              \
        const float *x = c->in[0];                                                                 \
        float *y = c->out[0];                                                                      \
        VECTOR_EACH(i, n, m, {                                                                     \
            const vf v = vf_load_some(m, x + i);                                                   \
            const pair r = way##_value((pair){ vd_low(v), vd_high(v) });                           \
            vf_store_some(m, y + i, vf_of_doubles(r.low, r.high));                                 \
        });                                                                                        \
    }                                                                                              \
    static void backward_##way##_f32(const keel_call *c)                                           \
    {                                                                                              \
        const int64_t n = c->rows * keel_row_count(&c->node->out[0]);                              \
        const float *x = c->in[0], *dy = c->out_grad[0];                                           \
        float *dx = c->in_grad[0];                                                                 \
        const bool adds = c->in_adds[0];                                                           \
        if (!dx) return;                                                                           \
        VECTOR_EACH(i, n, m, {                                                                     \
            const vf v = vf_load_some(m, x + i);                                                   \
            const vf g = vf_load_some(m, dy + i);                                                  \
            const pair r = way##_slope((pair){ vd_low(v), vd_high(v) });                           \
            vx_store_doubles(m, dx + i, vd_low(g) * r.low, vd_high(g) * r.high, adds);             \
        });                                                                                        \
    }

RUN(exact)
RUN(approximate)

/* ---- bfloat16 -------------------------------------------------------------------------------- */

/* P(X <= x), and exp(-x^2 / 2). */
INLINE vf normal_of(vf x, vf *e)
{
    static const float terms[] = { 0.0489424525f, -0.202119311f, 0.240640857f, -0.0170234683f,
                                   0.155961503f,  0.133355092f,  0.140270344f, -2.73155776e-05f };
    const vf one = vf_set(1), most = vf_set(12.9f); /* beyond it e is no normal number, here 0 */
    const vf size = size_of(x), t = vf_min(most, size);
    const vf w = vf_ratio(one, vf_fma(t, vf_set(0.35f), one));
    vf p = vf_set(terms[0]);
    EACH(i, COUNT_OF(terms) - 1) p = vf_fma(p, w, vf_set(terms[i + 1]));
    *e = exponential(vf_mul(t, vf_mul(t, vf_set(-0.5f))));
    *e = vf_choose(vf_greater(size, most), vf_zero(), *e);
    const vf below = vf_mul(*e, p);
    return vf_choose(vf_greater(x, vf_zero()), vf_sub(one, below), below);
}

INLINE vf exact_value_of(const void *args __attribute__((unused)), vf x)
{
    vf e;
    return vf_mul(x, normal_of(x, &e));
}

INLINE vf exact_slope_of(const void *args __attribute__((unused)), vf x)
{
    vf e;
    const vf below = normal_of(x, &e);
    return vf_fma(vf_mul(x, e), vf_set((float)(0.5 * M_2_SQRTPI * M_SQRT1_2)), below);
}

/* The approximation's weight of x is logistic(2u); bounded, or squares would be infinite. */
INLINE vf weight_of(vf x, vf *rise)
{
    const vf at = vf_min(vf_set(100), vf_max(vf_set(-100), x)), square = vf_mul(at, at);
    const vf a = vf_set((float)(2 * ROOT)), b = vf_set((float)(2 * ROOT * CUBIC));
    *rise = vf_mul(at, vf_fma(square, vf_mul(vf_set(3), b), a));
    return logistic(vf_mul(at, vf_fma(square, b, a)));
}

INLINE vf approximate_value_of(const void *args __attribute__((unused)), vf x)
{
    vf rise;
    return vf_mul(x, weight_of(x, &rise));
}

INLINE vf approximate_slope_of(const void *args __attribute__((unused)), vf x)
{
    vf rise;
    const vf s = weight_of(x, &rise);
    return vf_fma(vf_mul(s, vf_sub(vf_set(1), s)), rise, s);
}

POINTWISE_VECTOR_OF(keel_bf16, exact_bf16, exact_value_of, exact_slope_of, c->in[0])
POINTWISE_VECTOR_OF(keel_bf16, approximate_bf16, approximate_value_of, approximate_slope_of,
                    c->in[0])

/* ---- the kernel ------------------------------------------------------------------------------ */

#define EITHER(pass, suffix)                                                                       \
    static void pass##_##suffix(const keel_call *c)                                                \
    {                                                                                              \
        const keel_gelu_args *a = c->node->args;                                                   \
        (a->approximate ? pass##_approximate_##suffix : pass##_exact_##suffix)(c);                 \
    }

EITHER(forward, f32)
EITHER(backward, f32)
EITHER(forward, bf16)
EITHER(backward, bf16)

VECTOR_BOTH(gelu, vector_prepare);
