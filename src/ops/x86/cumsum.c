/* Sums up to each place along an axis, in double. Places of another axis lie in the lanes; along
 * the last axis a vector is summed up in itself, by shifts of its lanes, behind the sum of those
 * before it. */
#ifndef VALUE
#include "ops/axis.h"
#include "ops/x86/_double.h"

enum { HALF = LANES / 2 };

/* Sums of the lanes up to each one, from the first on or from the last on. */
static inline vd scan_up(vd x)
{
#ifdef __AVX512F__
    const __m512i zero = _mm512_setzero_si512();
#define SHIFT(x, n) _mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(x), zero, 8 - (n)))
    x += SHIFT(x, 1);
    x += SHIFT(x, 2);
    x += SHIFT(x, 4);
#undef SHIFT
#else
    x += _mm256_blend_pd(_mm256_permute4x64_pd(x, 0x90), _mm256_setzero_pd(), 1);
    x += _mm256_permute2f128_pd(x, x, 0x08);
#endif
    return x;
}

static inline vd scan_down(vd x)
{
#ifdef __AVX512F__
    const __m512i zero = _mm512_setzero_si512();
#define SHIFT(x, n) _mm512_castsi512_pd(_mm512_alignr_epi64(zero, _mm512_castpd_si512(x), (n)))
    x += SHIFT(x, 1);
    x += SHIFT(x, 2);
    x += SHIFT(x, 4);
#undef SHIFT
#else
    x += _mm256_blend_pd(_mm256_permute4x64_pd(x, 0xf9), _mm256_setzero_pd(), 8);
    x += _mm256_permute2f128_pd(x, x, 0x81);
#endif
    return x;
}

#define VALUE_FILE "ops/x86/cumsum.c"
#include "ops/x86/_values.h"

KEEL_USES_OP(cumsum);
VECTOR_BOTH(cumsum, vector_prepare);
#else
/* y[j] = the sum of x[0] to x[j] */
static void VALUE_(sum_up)(VALUE *y, const VALUE *x, int64_t n)
{
    double before = 0;
    VECTOR_EACH(i, n, m, {
        const vf v = vx_load_some(m, x + i);
        const vd low = scan_up(vd_low(v)) + before;
        const vd high = scan_up(vd_high(v)) + low[HALF - 1];
        vx_store_doubles(m, y + i, low, high, false);
        before = high[HALF - 1];
    });
}

/* dx[j] = the sum of dy[j] to dy[n - 1] */
static void VALUE_(sum_down)(VALUE *dx, const VALUE *dy, int64_t n, bool adds)
{
    double behind = 0;
    for (int64_t i = (n - 1) / LANES * LANES; i >= 0; i -= LANES) {
        const vm m = vm_first(n - i);
        const vf v = vx_load_some(m, dy + i);
        const vd high = scan_down(vd_high(v)) + behind;
        const vd low = scan_down(vd_low(v)) + high[0];
        vx_store_doubles(m, dx + i, low, high, adds);
        behind = low[0];
    }
}

static void VALUE_(forward)(const keel_call *c)
{
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    for (int64_t o = 0; o < c->rows * a.outer; o++, x += a.n * a.inner, y += a.n * a.inner) {
        if (a.inner == 1) {
            VALUE_(sum_up)(y, x, a.n);
            continue;
        }
        VECTOR_EACH(i, a.inner, m, {
            vd low = vd_zero();
            vd high = vd_zero();
            for (int64_t j = i; j < a.n * a.inner; j += a.inner) {
                const vf v = vx_load_some(m, x + j);
                low += vd_low(v);
                high += vd_high(v);
                vx_store_doubles(m, y + j, low, high, false);
            }
        });
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    const VALUE *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    for (int64_t o = 0; dx && o < c->rows * a.outer;
         o++, dx += a.n * a.inner, dy += a.n * a.inner) {
        if (a.inner == 1) {
            VALUE_(sum_down)(dx, dy, a.n, c->in_adds[0]);
            continue;
        }
        VECTOR_EACH(i, a.inner, m, {
            vd low = vd_zero();
            vd high = vd_zero();
            for (int64_t j = (a.n - 1) * a.inner + i; j >= 0; j -= a.inner) {
                const vf v = vx_load_some(m, dy + j);
                low += vd_low(v);
                high += vd_high(v);
                vx_store_doubles(m, dx + j, low, high, c->in_adds[0]);
            }
        });
    }
}
#endif
