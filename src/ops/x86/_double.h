/* Pointwise functions of float32 and bfloat16 values, computed in double precision and rounded
 * once, in vectors of 4 or 8 doubles, so a vector of values is two of them.
 *
 * The digits that float32 loses near 0, in the tails and by cancellation are there in double: the
 * relative error of every function here is below 1e-9, so its rounded result is within 1 ulp.
 * Operators work on vectors. */
#ifndef KEEL_OPS_X86_DOUBLE_H
#define KEEL_OPS_X86_DOUBLE_H
#include "ops/args.h"
#include "ops/real.h"
#include "ops/x86/_vector.h"
#include <float.h>
#include <math.h>

#ifdef __AVX512F__
typedef __m512d vd;
typedef __mmask8 vdm;

static inline vd vd_set(double x)
{
    return _mm512_set1_pd(x);
}
static inline vd vd_low(vf x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}
static inline vd vd_high(vf x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}
static inline vd vd_low_of(vi x) /* unsigned */
{
    return _mm512_cvtepu32_pd(_mm512_castsi512_si256(x));
}
static inline vd vd_high_of(vi x)
{
    return _mm512_cvtepu32_pd(_mm512_extracti64x4_epi64(x, 1));
}
static inline vf vf_of_doubles(vd low, vd high)
{
    const __m512 l = _mm512_castps256_ps512(_mm512_cvtpd_ps(low));
    return _mm512_insertf32x8(l, _mm512_cvtpd_ps(high), 1);
}
static inline vdm vd_greater(vd a, vd b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ);
}
static inline bool vd_all(vdm m)
{
    return m == 0xff;
}
static inline vd vd_choose(vdm m, vd yes, vd no)
{
    return _mm512_mask_mov_pd(no, m, yes);
}
static inline vd vd_max(vd a, vd b) /* b if either is NaN */
{
    return _mm512_max_pd(a, b);
}
static inline vd vd_min(vd a, vd b)
{
    return _mm512_min_pd(a, b);
}
static inline vd vd_sqrt(vd x)
{
    return _mm512_sqrt_pd(x);
}
static inline vd vd_round(vd x)
{
    return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vd vd_power2(vd n) /* 2^n, n whole and in [-1022, 1023] */
{
    const __m512i bits = _mm512_castpd_si512(n + (0x1.8p52 + 1023));
    return _mm512_castsi512_pd(_mm512_slli_epi64(bits, 52));
}
/* x = m 2^e with 1 <= m < 2, for x that is normal and above 0. */
static inline vd vd_split(vd x, vd *e)
{
    *e = _mm512_getexp_pd(x);
    return _mm512_getmant_pd(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
}
#else
typedef __m256d vd;
typedef __m256d vdm;

static inline vd vd_set(double x)
{
    return _mm256_set1_pd(x);
}
static inline vd vd_low(vf x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
static inline vd vd_high(vf x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}
static inline vd vd_low_of(vi x) /* unsigned */
{
    const __m256i less = vi_xor(x, vi_set(INT32_MIN));
    return _mm256_cvtepi32_pd(_mm256_castsi256_si128(less)) + 0x1p31;
}
static inline vd vd_high_of(vi x)
{
    const __m256i less = vi_xor(x, vi_set(INT32_MIN));
    return _mm256_cvtepi32_pd(_mm256_extracti128_si256(less, 1)) + 0x1p31;
}
static inline vf vf_of_doubles(vd low, vd high)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}
static inline vdm vd_greater(vd a, vd b)
{
    return _mm256_cmp_pd(a, b, _CMP_GT_OQ);
}
static inline bool vd_all(vdm m)
{
    return _mm256_movemask_pd(m) == 0xf;
}
static inline vd vd_choose(vdm m, vd yes, vd no)
{
    return _mm256_blendv_pd(no, yes, m);
}
static inline vd vd_max(vd a, vd b)
{
    return _mm256_max_pd(a, b);
}
static inline vd vd_min(vd a, vd b)
{
    return _mm256_min_pd(a, b);
}
static inline vd vd_sqrt(vd x)
{
    return _mm256_sqrt_pd(x);
}
static inline vd vd_round(vd x)
{
    return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vd vd_power2(vd n)
{
    const __m256i bits = _mm256_castpd_si256(n + (0x1.8p52 + 1023));
    return _mm256_castsi256_pd(_mm256_slli_epi64(bits, 52));
}
static inline vd vd_split(vd x, vd *e)
{
    const __m256i bits = _mm256_castpd_si256(x), two52 = _mm256_castpd_si256(vd_set(0x1p52));
    const __m256i fraction = _mm256_and_si256(bits, _mm256_set1_epi64x((1LL << 52) - 1));
    *e = _mm256_castsi256_pd(_mm256_or_si256(_mm256_srli_epi64(bits, 52), two52)) - (0x1p52 + 1023);
    return _mm256_castsi256_pd(_mm256_or_si256(fraction, _mm256_castpd_si256(vd_set(1))));
}
#endif

static inline vd vd_zero(void)
{
    return vd_set(0);
}
static inline vd vd_abs(vd x)
{
    return vd_max(-x, x);
}
static inline double vd_sum(vd x) /* with its lanes in their order */
{
    double sum = x[0];
    for (size_t i = 1; i < sizeof x / sizeof x[0]; i++) sum += x[i];
    return sum;
}

/* Writes two halves of a vector, rounded once, to p; adds them to what is there, or not. */
#define vx_store_doubles(m, p, low, high, adds)                                                    \
    do {                                                                                           \
        vd low_ = (low), high_ = (high);                                                           \
        if (adds) {                                                                                \
            const vf before_ = vx_load_some(m, p);                                                 \
            low_ += vd_low(before_);                                                               \
            high_ += vd_high(before_);                                                             \
        }                                                                                          \
        vx_store_some(m, p, vf_of_doubles(low_, high_));                                           \
    } while (0)

/* exp(r) - 1 for |r| <= ln 2 / 2, by Taylor to degree 10: within 1e-12, relative. */
static inline vd vd_expm1_near(vd r)
{
    vd p = vd_set(1.0 / 3628800);
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    return p * (r * r) + r;
}

/* x = n ln 2 + r. x is limited to where 2^n is a normal number, far beyond the range of a float. */
static inline vd vd_reduce(vd x, vd *r)
{
    const vd cut = vd_min(vd_set(709), vd_max(vd_set(-708), x));
    const vd n = vd_round(cut * M_LOG2E);
    *r = (cut - n * 0x1.62e42fefap-1) - n * 0x1.cf79abc9e3b39p-40;
    return n;
}

static inline vd vd_exp(vd x)
{
    vd r;
    const vd n = vd_reduce(x, &r), y = (vd_expm1_near(r) + 1) * vd_power2(n);
    const vd above = vd_choose(vd_greater(x, vd_set(709)), vd_set(INFINITY), y);
    return vd_choose(vd_greater(vd_set(-708), x), vd_zero(), above);
}

static inline vd vd_expm1(vd x)
{
    vd r;
    const vd n = vd_reduce(x, &r), power = vd_power2(n);
    const vd y = vd_expm1_near(r) * power + (power - 1);
    return vd_choose(vd_greater(x, vd_set(709)), vd_set(INFINITY), y);
}

/* 2 atanh(s) for |s| <= 1/3, by its series. */
static inline vd vd_twice_atanh(vd s)
{
    const vd z = s * s;
    vd p = vd_set(1.0 / 19);
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    return 2 * (s + s * z * p);
}

/* log(1 + e) for -1/2 <= e <= 1. */
static inline vd vd_log1p(vd e)
{
    return vd_twice_atanh(e / (e + 2));
}

/* log(x) = e ln 2 + log(m), of a float, which as a double is never too small to be normal. */
static inline vd vd_log(vd x)
{
    vd e, m = vd_split(x, &e);
    const vdm upper = vd_greater(m, vd_set(M_SQRT2));
    m = vd_choose(upper, 0.5 * m, m);
    e = vd_choose(upper, e + 1, e);
    const vd y = e * M_LN2 + vd_twice_atanh((m - 1) / (m + 1));
    const vd positive = vd_choose(vd_greater(x, vd_set(FLT_MAX)), x, y);
    const vd other = vd_choose(vd_greater(vd_zero(), x), vd_set(NAN), -1 / (x * x)); /* 0, NaN */
    return vd_choose(vd_greater(x, vd_zero()), positive, other);
}

/* sin(x + quarter pi / 2). x = n pi / 2 + r with pi / 2 in three parts, two of which have 33 bits,
 * so their products with n are exact; Taylor to degree 15 for |r| <= pi / 4. Lanes beyond 2^19 call
 * the plain function, because this is not accurate there. */
static inline vd vd_sine(vd x, int quarter)
{
    static const double most = 1 << 19;
    const vd n = vd_round(x * M_2_PI);
    vd r = x - n * 0x1.921fb544p+0;
    r = (r - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2e037073p-69;
    const vd z = r * r;
    vd s = vd_set(-1.0 / 1307674368000), c = vd_set(-1.0 / 87178291200);
    s = s * z + 1.0 / 6227020800;
    s = s * z - 1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    c = c * z + 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    const vd turns = n + quarter, half = vd_round(0.5 * turns - 0.25);
    const vd odd = turns - 2 * half, flip = half - 2 * vd_round(0.5 * half - 0.25);
    const vd size =
        vd_choose(vd_greater(odd, vd_set(0.5)), c * (z * z) - 0.5 * z + 1, s * (z * r) + r);
    vd y = vd_choose(vd_greater(flip, vd_set(0.5)), -size, size);
    if (!vd_all(vd_greater(vd_set(most), vd_abs(x))))
        for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
            if (fabs(x[i]) >= most) y[i] = quarter ? cos(x[i]) : sin(x[i]);
    return y;
}

/* a^b. Lanes in which a or b is 0, infinite or NaN call the plain function. */
static inline vd vd_pow(vd a, vd b)
{
    const vd size = vd_abs(a), y = vd_exp(b * vd_log(size)), half = 0.5 * b;
    const vdm broken = vd_greater(vd_abs(b - vd_round(b)), vd_zero());
    const vdm odd = vd_greater(vd_abs(half - vd_round(half)), vd_set(0.25));
    const vd below = vd_choose(broken, vd_set(NAN), vd_choose(odd, -y, y)); /* of a < 0 */
    vd all = vd_choose(vd_greater(vd_zero(), a), below, y);
    const vd plain = vd_min(size, vd_abs(b)), large = vd_max(size, vd_abs(b));
    if (!vd_all(vd_greater(plain, vd_zero())) || !vd_all(vd_greater(vd_set(INFINITY), large)))
        for (size_t i = 0; i < sizeof a / sizeof a[0]; i++)
            if (a[i] == 0 || b[i] == 0 || !isfinite(a[i]) || !isfinite(b[i]))
                all[i] = pow(a[i], b[i]);
    return all;
}

static inline vd vd_softplus(vd x)
{
    return vd_max(vd_zero(), x) + vd_log1p(vd_exp(-vd_abs(x)));
}

static inline vd vd_sigmoid(vd x)
{
    return 1 / (1 + vd_exp(-x));
}

static inline vd vd_tanh(vd x)
{
    const vd e = vd_expm1(vd_max(vd_set(-60), -2 * vd_abs(x))), t = -e / (e + 2);
    return vd_choose(vd_greater(vd_zero(), x), -t, t);
}

/* exp(z^2) erfc(z) (1 + 2z) for 0 <= z <= 40, a polynomial in (z - 3.75) / (z + 3.75) as Shepherd
 * and Laframboise 1981 propose: within 3e-12, relative. */
static inline vd vd_erfc_scaled(vd z, vd reciprocal) /* of z + 3.75 */
{
    static const double c[] = {
        9.71683263603116e-07,   -1.0356884873005088e-06, -1.0239411955463104e-05,
        2.2405786853059556e-05, 5.0597038835343826e-05,  -0.0002901388483941889,
        0.0002942509233977706,  0.0017556078844501131,   -0.00974673732609693,
        0.02836228455237397,    -0.05869337381998965,    0.0923043198584923,
        -0.10880393189758937,   0.08227673858989497,     0.003585415521929791,
        -0.14024059858768265,   1.2375126308378275
    };
    const vd u = (z - 3.75) * reciprocal;
    vd p = vd_set(c[0]);
    for (int i = 1; i < 17; i++) p = p * u + c[i];
    return p;
}

/* P(X <= x) of a normal X; *density: exp(-x^2 / 2). */
static inline vd vd_normal(vd x, vd *density)
{
    const vd z = vd_min(vd_set(40), vd_abs(x) * M_SQRT1_2), d = 1 / ((z + 3.75) * (1 + 2 * z));
    *density = vd_exp(-z * z);
    const vd tail = 0.5 * *density * vd_erfc_scaled(z, d * (1 + 2 * z)) * (d * (z + 3.75));
    return vd_choose(vd_greater(x, vd_zero()), 1 - tail, tail);
}

/* forward and backward from value(args, x) and slope(args, v), v being c->out[0] or c->in[0], for
 * values held in float32 and in bfloat16, and the kernel; y may be x and dx may be dy. */
#define DOUBLE_KERNEL(stem, value, slope, read)                                                    \
    DOUBLE_RUN(float, f32, value, slope, read)                                                     \
    DOUBLE_RUN(keel_bf16, bf16, value, slope, read)                                                \
    VECTOR_BOTH(stem, vector_prepare)

#define DOUBLE_RUN(type, suffix, value, slope, read)                                               \
    static void forward_##suffix(const keel_call *c)                                               \
    {                                                                                              \
        const int64_t count = c->rows * keel_row_count(&c->node->out[0]);                          \
        const type *x = c->in[0];                                                                  \
        type *y = c->out[0];                                                                       \
        VECTOR_EACH(i, count, m, {                                                                 \
            const vf v = vx_load_some(m, x + i);                                                   \
            const vd low = value(c->node->args, vd_low(v));                                        \
            const vd high = value(c->node->args, vd_high(v));                                      \
            vx_store_some(m, y + i, vf_of_doubles(low, high));                                     \
        });                                                                                        \
    }                                                                                              \
    static void backward_##suffix(const keel_call *c)                                              \
    {                                                                                              \
        const int64_t count = c->rows * keel_row_count(&c->node->out[0]);                          \
        const type *at = read, *dy = c->out_grad[0];                                               \
        type *dx = c->in_grad[0];                                                                  \
        if (!dx) return;                                                                           \
        VECTOR_EACH(i, count, m, {                                                                 \
            const vf v = vx_load_some(m, at + i);                                                  \
            const vf g = vx_load_some(m, dy + i);                                                  \
            const vd low = vd_low(g) * slope(c->node->args, vd_low(v));                            \
            const vd high = vd_high(g) * slope(c->node->args, vd_high(v));                         \
            vx_store_doubles(m, dx + i, low, high, c->in_adds[0]);                                 \
        });                                                                                        \
    }

#endif
