/* conv2d on bfloat16 values with W x W windows, stride 1, by Winograd's F(T x T, W x W), T being
 * TILE and W TAPS: 16 products for each tile of outputs instead of 36, of 2x2 outputs for windows
 * of 3x3, of 3x3 for windows of 2x2 (conv2d_winograd.c has the formulas), each of them by pairs
 * (_pairs_avx512_bf16.h).
 *
 * Values are widened, transformed in float32 and rounded once to bfloat16; so are the weights,
 * which are float32. Sums and the transforms after them are float32, and results are rounded once.
 * The direct sum does not have the rounding after the transform. Its error is 1.7 times as large,
 * in a weight gradient twice, because transforms add numbers of either sign. That is of the order
 * of the rounding to bfloat16 itself, at most 3 times as large (tests/test_conv_winograd.c).
 *
 * Forward and backward take a block of tiles at a time: they transform it, multiply it at the 16
 * points by each panel of filters, and transform back. Transformed values are stored as [point]
 * [tile][channel]; within 32 channels the even ones come first, since widening splits words so, and
 * weights are packed in that order. A weight gradient takes pairs of tiles, stored as [point][64
 * channels][pair][channel]; the sums of 64 channels and 64 filters stay in the cache. It is a sum
 * of spans of tiles, in order from the first row of the call.
 *
 * The file is long because the three passes share tiles and transforms, which must be inlined. A
 * pixel that is not finite may turn other outputs of its tile into NaN; such a step is refused in
 * any case. */
#ifndef TILE /* conv2d_winograd_2x2_avx512_bf16.c is this file with the other tiles and windows */
#define TILE 2
#define TAPS 3
#endif
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "ops/x86/_pairs_avx512_bf16.h"
#include "ops/x86/_winograd.h"
#include "ops/x86/_winograd_points.h"

KEEL_USES_OP(conv2d);

enum { WORDS = 2 * LANES, OUTPUTS = TILE * TILE };
enum { SHARED = TAPS - 1 };        /* columns of two neighbouring tiles */
enum { GRADIENT_LARGE = 1 << 15 }; /* floats a tap */

typedef struct plan {
    const keel_derived *packed; /* NULL: weights */
    int64_t tiles;              /* forward, backward: of a block */
    int64_t pairs;              /* weights: of a span */
    int64_t spans;
    int64_t filters; /* whose sums are in work at a time */
    /* Where things lie in scratch, in bytes; zeros lie first. v_point, m_point: in
     * elements, from one point to the next; weights have transformed gradients between v and m,
     * whose points are m_point apart. */
    int64_t v, m, v_point, m_point;
} plan;

/* Lines of pixels ------------------------------------------------------------------------------ */

/* The four lines that a line of tiles reads; those outside of the image are `zeros`. */
static void lines_of(const problem *p, const keel_bf16 *in, const cursor *c, const keel_bf16 *zeros,
                     const keel_bf16 *line[4])
{
    in += c->row * pixels(&p->in);
    for (int i = 0; i < 4; i++) {
        const int64_t h = TILE * c->i - p->top + i;
        line[i] = (uint64_t)h < (uint64_t)p->in.h ? in + h * p->in.w * p->in.c : zeros;
    }
}

/* Forward and backward ------------------------------------------------------------------------- */

/* Bt d of a column of four pixels, for 32 channels: [even or odd][4]. */
INLINE void column32(const problem *p, const keel_bf16 *const line[4], int64_t w, int64_t c,
                     __m512 t[2][4])
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    __m512 d[2][4];
    if ((uint64_t)w >= (uint64_t)p->in.w) {
        EACH(h, 2)
            EACH(i, 4) t[h][i] = _mm512_setzero_ps();
        return;
    }
    EACH(i, 4) {
        const __m512i both = _mm512_loadu_si512(line[i] + w * p->in.c + c);
        d[0][i] = (__m512)_mm512_slli_epi32(both, 16);
        d[1][i] = (__m512)_mm512_and_si512(both, upper);
    }
    EACH(h, 2) input_points(d[h], t[h]);
}

/* n neighbouring tiles, the first of which begins at column w. */
static void input_run(const problem *p, const keel_bf16 *const line[4], int64_t w, int64_t n,
                      keel_bf16 *to, int64_t point)
{
    for (int64_t c = 0; c < p->in.c; c += WORDS) {
        __m512 t[4][2][4];
        keel_bf16 *out = to + c;
        EACH(j, SHARED) column32(p, line, w + j, c, t[j]);
        for (int64_t i = 0; i < n; i++, out += p->in.c) {
            EACH(j, TILE) column32(p, line, w + TILE * i + SHARED + j, c, t[SHARED + j]);
            EACH(l, 4) {
                __m512 v[2][4];
                EACH(h, 2) {
                    const __m512 d[4] = { t[0][h][l], t[1][h][l], t[2][h][l], t[3][h][l] };
                    input_points(d, v[h]);
                }
                EACH(j, 4)
                    _mm512_storeu_si512(out + (4 * l + j) * point,
                                        (__m512i)_mm512_cvtne2ps_pbh(v[1][j], v[0][j]));
            }
            EACH(j, SHARED)
                EACH(h, 2)
                    EACH(l, 4) t[j][h][l] = t[TILE + j][h][l];
        }
    }
}

static void input_tiles(const problem *p, const keel_bf16 *in, cursor at, int64_t tiles,
                        const keel_bf16 *zeros, keel_bf16 *to, int64_t point)
{
    for (int64_t n; tiles > 0; tiles -= n, to += n * p->in.c) {
        const keel_bf16 *line[4];
        n = at_most(tiles, p->across - at.j);
        lines_of(p, in, &at, zeros, line);
        input_run(p, line, TILE * at.j - p->left, n, to, point);
        at.j += n - 1;
        cursor_next(p, &at);
    }
}

/* At m A of 16 filters of a tile. */
INLINE void output16(const float *m, int64_t point, __m512 y[OUTPUTS])
{
    __m512 half[4][TILE];
    EACH(i, 4) {
        __m512 x[4];
        EACH(j, 4) x[j] = _mm512_loadu_ps(m + (4 * i + j) * point);
        output_points(x, half[i]);
    }
    EACH(j, TILE) {
        const __m512 x[4] = { half[0][j], half[1][j], half[2][j], half[3][j] };
        __m512 column[TILE];
        output_points(x, column);
        EACH(i, TILE) y[TILE * i + j] = column[i];
    }
}

/* Tiles of filters [k, k + n) to where they belong, plus the bias, or what is there already. */
static void output_tiles(const problem *p, const float *m, int64_t point, cursor c, int64_t tiles,
                         int64_t k, int64_t n, const float *bias, keel_bf16 *out, bool adds)
{
    for (int64_t t = 0; t < tiles; t++, cursor_next(p, &c)) {
        bool there[OUTPUTS];
        int64_t at[OUTPUTS];
        outputs_of(p, &c, TILE, there, at);
        for (int64_t f = 0; f < n; f += WORDS, m += WORDS) {
            __m512 y[2][OUTPUTS];
            EACH(h, 2) output16(m + h * LANES, point, y[h]);
            EACH(h, 2) {
                const __m512 b =
                    bias ? _mm512_loadu_ps(bias + k + f + h * LANES) : _mm512_setzero_ps();
                EACH(j, OUTPUTS) y[h][j] = _mm512_add_ps(y[h][j], b);
            }
            EACH(j, OUTPUTS) {
                keel_bf16 *to = out + at[j] + k + f;
                if (!there[j]) continue;
                if (adds)
                    EACH(h, 2)
                        y[h][j] = _mm512_add_ps(
                            widened(_mm256_loadu_si256((const __m256i *)(to + h * LANES))),
                            y[h][j]);
                _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(y[1][j], y[0][j]));
            }
        }
    }
}

static void convolve(const keel_call *c, const problem *p, const keel_bf16 *in, const float *bias,
                     keel_bf16 *out, bool adds)
{
    const plan *pl = c->plan;
    keel_bf16 *const zeros = c->scratch, *const v = (keel_bf16 *)((char *)c->scratch + pl->v);
    float *const m = (float *)((char *)c->scratch + pl->m);
    const int64_t tiles = p->down * p->across * c->rows, pairs = p->in.c / 2;
    memset(zeros, 0, (size_t)(p->in.w * p->in.c) * sizeof *zeros);
    for (int64_t t = 0, n; t < tiles; t += n) {
        const cursor at = cursor_at(p, t);
        const uint32_t *u = pl->packed->data;
        n = at_most(tiles - t, pl->tiles);
        input_tiles(p, in, at, n, zeros, v, pl->v_point);
        for (int64_t k = 0, width; k < p->out.c; k += width) {
            width = at_most(p->out.c - k, PANEL);
            for (int x = 0; x < POINTS; x++, u += pairs * width) {
                /* the next panel; asking past the end does no harm */
                keel_pairs_ahead prefetch = { { (const char *)(u + pairs * width) },
                                              { (const char *)(u + 2 * pairs * width) } };
                const keel_pairs q = { .a = (const char *)(v + x * pl->v_point),
                                       .a_row = p->in.c * (int64_t)sizeof *v,
                                       .a_step = 2 * sizeof *v,
                                       .pairs = pairs,
                                       .n_tap = 1,
                                       .w = u,
                                       .prefetch = &prefetch,
                                       .out = m + x * pl->m_point,
                                       .out_row = width,
                                       .wide = true };
                keel_pairs_multiply(&q, n, width);
            }
            output_tiles(p, m, pl->m_point, at, n, k, width, bias, out, adds);
        }
    }
}

static void forward(const keel_call *c)
{
    const problem p = problem_of(c->node, false, TILE);
    convolve(c, &p, c->in[0], c->node->n_weight > 1 ? c->weight[1] : NULL, c->out[0], false);
}

static void backward(const keel_call *c)
{
    const problem p = problem_of(c->node, true, TILE);
    if (c->in_grad[0]) convolve(c, &p, c->out_grad[0], NULL, c->in_grad[0], c->in_adds[0]);
}

/* The kernel, transformed: [panel][point][pairs of channels][columns] ----------------------------
 */

typedef struct packer {
    int64_t c, k; /* Keras's kernel is [TAPS, TAPS, c, k] */
    bool turned;  /* for backward: rotated by 180 degrees, filters and channels exchanged */
} packer;

/* G g Gt of 16 neighbours in memory, whose taps are `tap` floats apart. */
INLINE void points_of_kernel(const float *w, int64_t tap, bool turned, __m512 u[POINTS])
{
    __m512 t[4][TAPS];
    EACH(j, TAPS) {
        __m512 g[TAPS], column[4];
        EACH(i, TAPS) {
            const int at = TAPS * i + j;
            g[i] = _mm512_loadu_ps(w + (turned ? TAPS * TAPS - 1 - at : at) * tap);
        }
        kernel_points(g, column);
        EACH(i, 4) t[i][j] = column[i];
    }
    EACH(i, 4) kernel_points(t[i], u + 4 * i);
}

/* Pair r of 32 channels: 0 and 2, 4 and 6, .., then 1 and 3, 5 and 7, .. */
static int64_t first_of_pair(int64_t r)
{
    return r < LANES / 2 ? 4 * r : 4 * r - 31;
}

static void pack_straight(const packer *s, const float *w, uint32_t *to)
{
    const int64_t tap = s->c * s->k, pairs = s->c / 2;
    for (int64_t k = 0, width; k < s->k; k += width, to += POINTS * pairs * width) {
        width = at_most(s->k - k, PANEL);
        for (int64_t r = 0; r < pairs; r++)
            for (int64_t j = 0; j < width; j += LANES) {
                const int64_t c = 2 * r / WORDS * WORDS + first_of_pair(r % LANES);
                const float *at = w + c * s->k + k + j;
                __m512 low[POINTS], high[POINTS];
                points_of_kernel(at, tap, false, low);
                points_of_kernel(at + 2 * s->k, tap, false, high);
                EACH(x, POINTS)
                    _mm512_stream_si512((__m512i *)(to + (x * pairs + r) * width + j),
                                        keel_pairs_of(low[x], high[x]));
            }
    }
}

static void pack_turned(const packer *s, const float *w, uint32_t *to)
{
    const int64_t tap = s->c * s->k, pairs = s->k / 2;
    const __m512i evens_first =
        _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28, 26, 24,
                         22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    __m512i square[POINTS][LANES];
    for (int64_t c = 0, width; c < s->c; c += width, to += POINTS * pairs * width) {
        width = at_most(s->c - c, PANEL);
        for (int64_t j = 0; j < width; j += LANES)
            for (int64_t k = 0; k < s->k; k += WORDS) {
                for (int64_t r = 0; r < LANES; r++) {
                    const float *at = w + (c + j + r) * s->k + k;
                    __m512 low[POINTS], high[POINTS];
                    points_of_kernel(at, tap, true, low);
                    points_of_kernel(at + LANES, tap, true, high);
                    EACH(x, POINTS)
                        square[x][r] = _mm512_permutexvar_epi16(
                            evens_first, (__m512i)_mm512_cvtne2ps_pbh(high[x], low[x]));
                }
                for (int x = 0; x < POINTS; x++) {
                    uint32_t *at = to + (x * pairs + k / 2) * width + j;
                    keel_pairs_turn(square[x]);
                    for (int r = 0; r < LANES; r++)
                        _mm512_stream_si512((__m512i *)(at + r * width), square[x][r]);
                }
            }
    }
}

static void refresh(const keel_derived *d, const void *weight)
{
    const packer *s = d->plan;
    (s->turned ? pack_turned : pack_straight)(s, weight, d->data);
    _mm_sfence(); /* other workers read it after their next meeting */
}

/* Weights -------------------------------------------------------------------------------------- */

/* Bt d of a column of four pixels, for 16 channels. */
INLINE void column16(const problem *p, const keel_bf16 *const line[4], int64_t w, int64_t c,
                     __m512 t[4])
{
    __m512 d[4];
    if ((uint64_t)w >= (uint64_t)p->in.w) {
        EACH(i, 4) t[i] = _mm512_setzero_ps();
        return;
    }
    EACH(i, 4) d[i] = widened(_mm256_loadu_si256((const __m256i *)(line[i] + w * p->in.c + c)));
    input_points(d, t);
}

/* Both tiles of a pair, from columns a and b of Bt d. */
INLINE void input_pair(const __m512 a[4][4], const __m512 b[4][4], uint32_t *to, int64_t point)
{
    EACH(l, 4) {
        __m512 low[4], high[4];
        const __m512 da[4] = { a[0][l], a[1][l], a[2][l], a[3][l] };
        const __m512 db[4] = { b[0][l], b[1][l], b[2][l], b[3][l] };
        input_points(da, low);
        input_points(db, high);
        EACH(j, 4) _mm512_storeu_si512(to + (4 * l + j) * point, keel_pairs_of(low[j], high[j]));
    }
}

/* Channels lie in blocks of PANEL, each [pairs][up to PANEL channels + LANES]. The LANES between
 * let what a channel has in neighbouring pairs lie in different places of the cache. */
static int64_t block_row(int64_t channels, int64_t c)
{
    return at_most(channels - c / PANEL * PANEL, PANEL) + LANES;
}

static uint32_t *block_at(uint32_t *v, int64_t c, int64_t pairs)
{
    return v + c / PANEL * (PANEL + LANES) * pairs;
}

/* n pairs of neighbouring tiles, pair `first` of `pairs`. */
static void input_pairs_run(const problem *p, const keel_bf16 *const line[4], int64_t w, int64_t n,
                            uint32_t *v, int64_t point, int64_t first, int64_t pairs)
{
    for (int64_t c = 0; c < p->in.c; c += LANES) {
        const int64_t row = block_row(p->in.c, c);
        uint32_t *to = block_at(v, c, pairs) + first * row + c % PANEL;
        __m512 t[2 * TILE + SHARED][4];
        EACH(j, SHARED) column16(p, line, w + j, c, t[j]);
        for (int64_t i = 0; i < n; i++, to += row) {
            EACH(j, 2 * TILE) column16(p, line, w + 2 * TILE * i + SHARED + j, c, t[SHARED + j]);
            input_pair((const __m512(*)[4])t, (const __m512(*)[4])(t + TILE), to, point);
            EACH(j, SHARED)
                EACH(l, 4) t[j][l] = t[2 * TILE + j][l];
        }
    }
}

/* A pair of tiles from two lines of tiles; the second may be missing. */
static void input_pair_apart(const problem *p, const keel_bf16 *in, cursor at, bool two,
                             const keel_bf16 *zeros, uint32_t *v, int64_t point, int64_t first,
                             int64_t pairs)
{
    const keel_bf16 *line[4], *other[4] = { zeros, zeros, zeros, zeros };
    const int64_t w = TILE * at.j - p->left;
    lines_of(p, in, &at, zeros, line);
    cursor_next(p, &at);
    if (two) lines_of(p, in, &at, zeros, other);
    for (int64_t c = 0; c < p->in.c; c += LANES) {
        __m512 a[4][4], b[4][4];
        EACH(j, 4) column16(p, line, w + j, c, a[j]);
        EACH(j, 4) column16(p, other, TILE * at.j - p->left + j, c, b[j]);
        input_pair((const __m512(*)[4])a, (const __m512(*)[4])b,
                   block_at(v, c, pairs) + first * block_row(p->in.c, c) + c % PANEL, point);
    }
}

static void input_pairs(const problem *p, const keel_bf16 *in, int64_t t, int64_t tiles,
                        const keel_bf16 *zeros, uint32_t *v, int64_t point)
{
    const int64_t pairs = ceil_of(tiles, 2);
    cursor at = cursor_at(p, t);
    for (int64_t i = 0, n; i < pairs; i += n) {
        const keel_bf16 *line[4];
        n = at_most(tiles / 2 - i, (p->across - at.j) / 2);
        if (n > 0) {
            lines_of(p, in, &at, zeros, line);
            input_pairs_run(p, line, TILE * at.j - p->left, n, v, point, i, pairs);
        } else {
            n = 1;
            input_pair_apart(p, in, at, 2 * i + 1 < tiles, zeros, v, point, i, pairs);
        }
        for (int64_t k = 0; k < 2 * n; k++) cursor_next(p, &at);
    }
}

/* A dy At of 16 filters of a tile. */
INLINE void gradient16(const keel_bf16 *const at[OUTPUTS], int64_t k, __m512 w[POINTS])
{
    __m512 t[4][TILE];
    EACH(j, TILE) {
        __m512 y[TILE], column[4];
        EACH(i, TILE) y[i] = widened(_mm256_loadu_si256((const __m256i *)(at[TILE * i + j] + k)));
        gradient_points(y, column);
        EACH(i, 4) t[i][j] = column[i];
    }
    EACH(i, 4) gradient_points(t[i], w + 4 * i);
}

static void gradient_pairs(const problem *p, const keel_bf16 *dy, int64_t t, int64_t tiles,
                           int64_t first, int64_t n, const keel_bf16 *zeros, uint32_t *w,
                           int64_t point)
{
    const int64_t pairs = ceil_of(tiles, 2);
    cursor at = cursor_at(p, t);
    for (int64_t i = 0; i < pairs; i++) {
        const keel_bf16 *pixel[2][OUTPUTS];
        for (int h = 0; h < 2; h++, cursor_next(p, &at)) {
            bool there[OUTPUTS];
            int64_t place[OUTPUTS];
            outputs_of(p, &at, TILE, there, place);
            EACH(j, OUTPUTS)
                pixel[h][j] = there[j] && 2 * i + h < tiles ? dy + place[j] + first : zeros;
        }
        for (int64_t k = 0; k < n; k += LANES) {
            const int64_t width = at_most(n - k / PANEL * PANEL, PANEL);
            uint32_t *to = w + k / PANEL * PANEL * pairs + i * width + k % PANEL;
            __m512 low[POINTS], high[POINTS];
            gradient16(pixel[0], k, low);
            gradient16(pixel[1], k, high);
            EACH(x, POINTS) _mm512_storeu_si512(to + x * point, keel_pairs_of(low[x], high[x]));
        }
    }
}

/* Gt u G of nc channels and nk filters into dw, whose taps are `tap` and whose channels `row`
 * floats apart. u [POINTS][PANEL * PANEL], of which [nc][nk] are used. A large gradient goes past
 * the caches, which it would only empty: 2 % of a step of ResNet-18. */
static void kernel_gradient(const float *u, int64_t nc, int64_t nk, float *dw, int64_t tap,
                            int64_t row, bool adds)
{
    const bool past = tap >= GRADIENT_LARGE && (uintptr_t)dw % 64 == 0;
    for (int64_t c = 0; c < nc; c++)
        for (int64_t k = 0; k < nk; k += LANES) {
            const float *at = u + c * nk + k;
            float *to = dw + c * row + k;
            __m512 line[4][TAPS];
            EACH(i, 4) {
                __m512 x[4];
                EACH(j, 4) x[j] = _mm512_loadu_ps(at + (4 * i + j) * PANEL * PANEL);
                kernel_gradient_points(x, line[i]);
            }
            EACH(j, TAPS) {
                const __m512 x[4] = { line[0][j], line[1][j], line[2][j], line[3][j] };
                __m512 g[TAPS];
                kernel_gradient_points(x, g);
                EACH(i, TAPS) {
                    float *dst = to + (TAPS * i + j) * tap;
                    if (!adds && past)
                        _mm512_stream_ps(dst, g[i]);
                    else
                        _mm512_storeu_ps(dst,
                                         adds ? _mm512_add_ps(_mm512_loadu_ps(dst), g[i]) : g[i]);
                }
            }
        }
}

/* Filters [first, first + n_k) of the gradient, over span s. */
static void span_products(const keel_call *c, const problem *p, int64_t first, int64_t n_k,
                          int64_t s, int64_t pairs, const uint32_t *v, const uint32_t *w, float *u)
{
    const plan *pl = c->plan;
    const int64_t tap = p->in.c * p->out.c;
    for (int64_t k = 0; k < n_k; k += PANEL)
        for (int64_t i = 0; i < p->in.c; i += PANEL) {
            const int64_t nc = at_most(p->in.c - i, PANEL), nk = at_most(n_k - k, PANEL);
            const int64_t row = block_row(p->in.c, i);
            for (int x = 0; x < POINTS; x++) {
                const uint32_t *at = block_at((uint32_t *)v, i, pairs) + x * pl->v_point;
                const uint32_t *from = w + x * pl->m_point + k * pairs;
                keel_pairs_ahead prefetch = { { (const char *)(at + pl->v_point),
                                                (const char *)(from + pl->m_point) },
                                              { (const char *)(at + pl->v_point + pairs * row),
                                                (const char *)(from + pl->m_point + pairs * nk) } };
                const keel_pairs q = {
                    .a = (const char *)at,
                    .a_row = sizeof *v,
                    .a_step = row * (int64_t)sizeof *v,
                    .pairs = pairs,
                    .n_tap = 1,
                    .w = from,
                    .out = u + x * PANEL * PANEL,
                    .out_row = nk,
                    .wide = true,
                    .adds = s > 0,
                    .prefetch = &prefetch,
                };
                keel_pairs_multiply(&q, nc, nk);
            }
            if (s == pl->spans - 1)
                kernel_gradient(u, nc, nk, (float *)c->weight_grad[0] + i * p->out.c + first + k,
                                tap, p->out.c, c->weight_adds);
            if (pl->spans > 1) u += POINTS * PANEL * PANEL;
        }
}

static void weights(const keel_call *c)
{
    const plan *pl = c->plan;
    const problem p = problem_of(c->node, false, TILE);
    keel_bf16 *const zeros = c->scratch;
    uint32_t *const v = (uint32_t *)((char *)c->scratch + pl->v);
    uint32_t *const w = v + POINTS * pl->v_point;
    float *const u = (float *)((char *)c->scratch + pl->m);
    const int64_t places = p.out.h * p.out.w * c->rows, tiles = p.down * p.across * c->rows;
    float *db = c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    const keel_span all = { .out_grad = c->out_grad[0], .rows = places };
    if (db) keel_pairs_sum(&all, 1, p.out.c, 0, p.out.c, db, c->weight_adds);
    if (!c->weight_grad[0]) return;
    memset(zeros, 0, (size_t)pl->v);
    for (int64_t k = 0; k < p.out.c; k += pl->filters)
        for (int64_t s = 0; s < pl->spans; s++) {
            const int64_t n_k = at_most(p.out.c - k, pl->filters), t = 2 * s * pl->pairs;
            const int64_t n = at_most(tiles - t, 2 * pl->pairs);
            if (k == 0 || pl->spans > 1) input_pairs(&p, c->in[0], t, n, zeros, v, pl->v_point);
            gradient_pairs(&p, c->out_grad[0], t, n, k, n_k, zeros, w, pl->m_point);
            span_products(c, &p, k, n_k, s, ceil_of(n, 2), v, w, u);
        }
    _mm_sfence(); /* others read it after their next meeting */
}

/* Prepare -------------------------------------------------------------------------------------- */

static keel_status derive(keel_prepare *p, plan *pl)
{
    const int64_t *w = p->node->weight[0].shape.dim;
    packer *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    *s = (packer){ w[2], w[3], p->pass == KEEL_BACKWARD };
    keel_derived want = { .bytes = (size_t)(POINTS * w[2] * w[3]) * sizeof(keel_bf16),
                          .key = 0x57494e4f42463136u + 16 * TILE + s->turned,
                          .refresh = refresh,
                          .release = keel_free,
                          .plan = s };
    return p->derive(p->context, &want, &pl->packed);
}

static void plan_blocks(plan *pl, const problem *o, int64_t tiles, int64_t *scratch)
{
    /* 28 to 98 tiles are even within 5 % */
    pl->tiles = at_most(o->in.c <= 64 ? 56 : o->in.c <= 256 ? 48 : 64, tiles);
    pl->v = up(o->in.w * o->in.c * 2, 64);
    pl->v_point = pl->tiles * o->in.c + 5 * WORDS;
    pl->m = pl->v + POINTS * pl->v_point * 2;
    pl->m_point = pl->tiles * PANEL + 5 * LANES;
    *scratch = pl->m + POINTS * pl->m_point * 4;
}

static void plan_spans(plan *pl, const problem *o, int64_t tiles, int64_t *scratch)
{
    const int64_t longer = o->in.w * o->in.c > o->out.c ? o->in.w * o->in.c : o->out.c;
    const int64_t blocks = ceil_of(o->in.c, PANEL);
    /* half as many pairs are up to 8 % slower, 64 filters 7 %, all of them even */
    pl->pairs = at_most(o->in.c <= 64 ? 128 : 196, ceil_of(tiles, 2));
    pl->spans = ceil_of(tiles, 2 * pl->pairs);
    pl->filters = at_most(o->out.c, 256);
    pl->v = up(longer * 2, 64);
    pl->v_point = blocks * (PANEL + LANES) * pl->pairs + 5 * LANES;
    pl->m_point = pl->filters * pl->pairs + 5 * LANES;
    pl->m = pl->v + POINTS * (pl->v_point + pl->m_point) * 4;
    *scratch = pl->m + POINTS * PANEL * PANEL * 4 *
                           (pl->spans > 1 ? blocks * ceil_of(pl->filters, PANEL) : 1);
}

/* Where it is faster: products, those with the rests of tiles counted, are at most two thirds of
 * the direct ones. Measured on one core over 32 to 512 channels: 1.3 to 2.2 times as fast. */
static bool pays(const problem *o)
{
    const int64_t places = o->out.h * o->out.w;
    return o->in.c % WORDS == 0 && o->out.c % WORDS == 0 && (TILE == 2 || places >= 49) &&
           (double)(POINTS * o->down * o->across) <= 0.65 * TAPS * TAPS * (double)places;
}

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    if (n->real != KEEL_FLOAT32 || n->held != KEEL_BFLOAT16 || n->in[0].dtype != KEEL_BFLOAT16 ||
        p->rows < 1 || p->pass > KEEL_WEIGHTS || !has_tiles(n))
        return KEEL_EUNSUP;
    const problem o = problem_of(n, p->pass == KEEL_BACKWARD, TILE);
    const int64_t tiles = o.down * o.across * p->rows;
    if (!pays(&o)) return KEEL_EUNSUP;
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    if (p->pass == KEEL_WEIGHTS)
        plan_spans(pl, &o, tiles, &p->scratch);
    else
        plan_blocks(pl, &o, tiles, &p->scratch);
    const keel_status s = p->pass == KEEL_WEIGHTS ? KEEL_OK : derive(p, pl);
    if (s < 0)
        keel_free(pl);
    else
        p->plan = pl;
    return s;
}

#if TILE == 2
const keel_kernel keel_kernel_conv2d_winograd_avx512_bf16 = {
    .name = "winograd_avx512_bf16",
    .priority = KEEL_PRIORITY_PAIRS_WINOGRAD,
#else
const keel_kernel keel_kernel_conv2d_winograd_2x2_avx512_bf16 = {
    .name = "winograd_2x2_avx512_bf16",
    .priority = KEEL_PRIORITY_PAIRS_WINOGRAD_2X2,
#endif
    .op = &keel_op_conv2d,
    .needs = KEEL_CPU_AVX512_BF16,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
