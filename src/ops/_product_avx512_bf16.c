/* Products on bfloat16 values with the weights, by AVX512_BF16's products of pairs: dense, and
 * conv2d with 1x1 windows, where a place is a pixel.
 *
 *     forward   y  [n, K] = x  [n, C] W  [C, K] + b     pairs of channels
 *     backward  dx [n, C] = dy [n, K] Wt [K, C]         pairs of outputs
 *     weights   dW [C, K] = xt [C, n] dy [n, K]         pairs of places
 *
 * An instruction adds two products to each of 16 sums: a pair of a's row, the same for all lanes,
 * times 16 pairs of w. So the right operand is packed in panels of at most 64 columns, a 32-bit
 * pair an element, [pairs][columns]; a block of rows x columns of sums stays in registers while the
 * pairs run. Weights are rounded to bfloat16 where they are packed.
 *
 * A sum takes its pairs one after the other, whatever rows are beside it. Pairs of places are those
 * of the step where a row is one place, (0, 1), (2, 3) ..., also where a cut goes between: one
 * device and many give the same bits. */
#include "ops/_product_avx512_bf16.h"
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "ops/args.h"
#include "tensor/bfloat16.h"
#include <immintrin.h>
#include <string.h>

enum { LANES = 16, VECTORS = 4, PANEL = VECTORS * LANES, ROWS_MOST = 12 };
#define INLINE static inline __attribute__((always_inline))
/* Unrolled, else sums would live in memory and not in registers. */
#define EACH(i, n) _Pragma("GCC unroll 12") for (int i = 0; i < (n); i++)

static __mmask16 first16(int64_t n)
{
    return n >= 16 ? (__mmask16)0xffff : n <= 0 ? (__mmask16)0 : (__mmask16)((1u << n) - 1);
}

static __mmask32 first32(int64_t n)
{
    return n >= 32 ? 0xffffffff : n <= 0 ? 0 : (__mmask32)((1u << n) - 1);
}

/* Rows times one panel ----------------------------------------------------------------------- */

typedef struct panel {
    const char *a; /* pair p of row i: 32 bits at a + i * a_row + p * a_step, in bytes */
    int64_t a_row, a_step;
    int64_t pairs;
    bool half;          /* the last pair of a row has one value, and memory may end behind it */
    const uint32_t *w;  /* [pairs][columns, rounded up to LANES] */
    const float *start; /* [columns]: what sums begin with; NULL: 0 */
    void *out;          /* keel_bf16, or float where `wide` */
    int64_t out_row;
    bool wide, adds;
} panel;

INLINE __m512 widened(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/* rows and vectors are constants where this is called; the last vector has the lanes of `last`. */
INLINE void block(const panel *p, int64_t i, const int rows, const int vectors, __mmask16 last)
{
    __m512 sum[ROWS_MOST][VECTORS];
    __m512i w[VECTORS];
    const char *a = p->a + i * p->a_row;
    const uint32_t *at = p->w;
    float *const wide = (float *)p->out + i * p->out_row;
    keel_bf16 *const narrow = (keel_bf16 *)p->out + i * p->out_row;
#define MASK(v) ((v) < vectors - 1 ? (__mmask16)0xffff : last)
    EACH(r, rows) EACH(v, vectors)
    {
        const float *from = p->wide ? wide + r * p->out_row : p->start;
        const bool any = p->wide ? p->adds : p->start != NULL;
        sum[r][v] = any ? _mm512_maskz_loadu_ps(MASK(v), from + v * LANES) : _mm512_setzero_ps();
    }
    for (int64_t pair = p->half; pair < p->pairs; pair++, a += p->a_step, at += vectors * LANES) {
        EACH(v, vectors) w[v] = _mm512_loadu_si512(at + v * LANES);
        EACH(r, rows)
        {
            int32_t both;
            memcpy(&both, a + r * p->a_row, sizeof both);
            const __m512i x = _mm512_set1_epi32(both);
            EACH(v, vectors) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)x, (__m512bh)w[v]);
        }
    }
    if (p->half) {
        EACH(v, vectors) w[v] = _mm512_loadu_si512(at + v * LANES);
        EACH(r, rows)
        {
            keel_bf16 one;
            memcpy(&one, a + r * p->a_row, sizeof one);
            const __m512i x = _mm512_set1_epi32(one);
            EACH(v, vectors) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)x, (__m512bh)w[v]);
        }
    }
    if (p->wide) {
        EACH(r, rows)
        EACH(v, vectors)
        _mm512_mask_storeu_ps(wide + r * p->out_row + v * LANES, MASK(v), sum[r][v]);
        return;
    }
    EACH(r, rows) EACH(v, vectors)
    {
        keel_bf16 *to = narrow + r * p->out_row + v * LANES;
        __m512 y = sum[r][v];
        if (p->adds) y = _mm512_add_ps(widened(_mm256_maskz_loadu_epi16(MASK(v), to)), y);
        _mm256_mask_storeu_epi16(to, MASK(v), (__m256i)_mm512_cvtneps_pbh(y));
    }
#undef MASK
}

/* A block for each number of rows and vectors of which the sums fit into registers; below 12 sums
 * the processor would wait for them. */
#define BLOCK(v, r)                                                                                \
    static void block_##v##_##r(const panel *p, int64_t i, __mmask16 last)                         \
    {                                                                                              \
        block(p, i, r, v, last);                                                                   \
    }
#define BLOCKS_6(v)  BLOCK(v, 1) BLOCK(v, 2) BLOCK(v, 3) BLOCK(v, 4) BLOCK(v, 5) BLOCK(v, 6)
#define BLOCKS_8(v)  BLOCKS_6(v) BLOCK(v, 7) BLOCK(v, 8)
#define BLOCKS_12(v) BLOCKS_8(v) BLOCK(v, 9) BLOCK(v, 10) BLOCK(v, 11) BLOCK(v, 12)
BLOCKS_12(1)
BLOCKS_12(2)
BLOCKS_8(3)
BLOCKS_6(4)

#define NAMES_6(v)                                                                                 \
    block_##v##_1, block_##v##_2, block_##v##_3, block_##v##_4, block_##v##_5, block_##v##_6
#define NAMES_8(v)  NAMES_6(v), block_##v##_7, block_##v##_8
#define NAMES_12(v) NAMES_8(v), block_##v##_9, block_##v##_10, block_##v##_11, block_##v##_12
typedef void (*run_block)(const panel *, int64_t, __mmask16);
static const run_block blocks[VECTORS][ROWS_MOST] = {
    { NAMES_12(1) }, { NAMES_12(2) }, { NAMES_8(3) }, { NAMES_6(4) }
};
static const int rows_most[VECTORS] = { 12, 12, 8, 6 };

/* n rows in blocks that differ by one row at most. */
static void multiply(const panel *p, int64_t n, int64_t columns)
{
    const int vectors = (int)((columns + LANES - 1) / LANES);
    const int64_t n_block = (n + rows_most[vectors - 1] - 1) / rows_most[vectors - 1];
    const __mmask16 last = first16(columns - (vectors - 1) * LANES);
    for (int64_t b = 0, i = 0, end; b < n_block; b++, i = end) {
        end = n * (b + 1) / n_block;
        blocks[vectors - 1][end - i - 1](p, i, last);
    }
}

/* Packing ------------------------------------------------------------------------------------ */

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Two rows of n values as pairs, zeros up to a multiple of LANES; NULL: zeros. */
static void pack_pair(uint32_t *to, const keel_bf16 *low, const keel_bf16 *high, int64_t n)
{
    __m512i index = _mm512_set_epi32(47 << 16 | 15, 46 << 16 | 14, 45 << 16 | 13, 44 << 16 | 12,
                                     43 << 16 | 11, 42 << 16 | 10, 41 << 16 | 9, 40 << 16 | 8,
                                     39 << 16 | 7, 38 << 16 | 6, 37 << 16 | 5, 36 << 16 | 4,
                                     35 << 16 | 3, 34 << 16 | 2, 33 << 16 | 1, 32 << 16 | 0);
    const __m512i upper = _mm512_add_epi16(index, _mm512_set1_epi16(16));
    for (int64_t i = 0; i < n; i += 32) {
        const __mmask32 m = first32(n - i);
        const __m512i a = _mm512_maskz_loadu_epi16(low ? m : 0, low + i);
        const __m512i b = _mm512_maskz_loadu_epi16(high ? m : 0, high + i);
        _mm512_storeu_si512(to + i, _mm512_permutex2var_epi16(a, index, b));
        if (n - i > LANES)
            _mm512_storeu_si512(to + i + LANES, _mm512_permutex2var_epi16(a, upper, b));
    }
}

/* Columns [k, k + columns) of W as pairs of rows. */
static void pack_panel(uint32_t *to, const float *w, int64_t n_c, int64_t n_k, int64_t k,
                       int64_t columns)
{
    const __m512i index = _mm512_set_epi32(
        31 << 16 | 15, 30 << 16 | 14, 29 << 16 | 13, 28 << 16 | 12, 27 << 16 | 11, 26 << 16 | 10,
        25 << 16 | 9, 24 << 16 | 8, 23 << 16 | 7, 22 << 16 | 6, 21 << 16 | 5, 20 << 16 | 4,
        19 << 16 | 3, 18 << 16 | 2, 17 << 16 | 1, 16 << 16 | 0);
    const int64_t width = up(columns, LANES);
    for (int64_t c = 0; c < n_c; c += 2)
        for (int64_t j = 0; j < width; j += LANES, to += LANES) {
            const __mmask16 m = first16(columns - j);
            const float *at = w + c * n_k + k + j;
            const __m512 low = _mm512_maskz_loadu_ps(m, at);
            const __m512 high = _mm512_maskz_loadu_ps(c + 1 < n_c ? m : 0, at + n_k);
            const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(high, low);
            _mm512_storeu_si512(to, _mm512_permutexvar_epi16(index, both));
        }
}

INLINE void turn(__m512i a[16])
{
    __m512i b[16];
    EACH(i, 8)
    {
        b[2 * i] = _mm512_unpacklo_epi32(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm512_unpackhi_epi32(a[2 * i], a[2 * i + 1]);
    }
    EACH(i, 4) EACH(h, 2)
    {
        a[4 * i + 2 * h] = _mm512_unpacklo_epi64(b[4 * i + h], b[4 * i + 2 + h]);
        a[4 * i + 2 * h + 1] = _mm512_unpackhi_epi64(b[4 * i + h], b[4 * i + 2 + h]);
    }
    EACH(h, 2) EACH(i, 4)
    {
        b[8 * h + i] = _mm512_shuffle_i32x4(a[8 * h + i], a[8 * h + 4 + i], 0x88);
        b[8 * h + 4 + i] = _mm512_shuffle_i32x4(a[8 * h + i], a[8 * h + 4 + i], 0xdd);
    }
    EACH(i, 8)
    {
        a[i] = _mm512_shuffle_i32x4(b[i], b[8 + i], 0x88);
        a[8 + i] = _mm512_shuffle_i32x4(b[i], b[8 + i], 0xdd);
    }
}

/* Rows [c, c + columns) of W, turned, as pairs of columns: 16 x 16 pairs at a time. */
static void pack_turned(uint32_t *to, const float *w, int64_t n_k, int64_t c, int64_t columns)
{
    const int64_t width = up(columns, LANES), pairs = (n_k + 1) / 2;
    for (int64_t j = 0; j < width; j += LANES)
        for (int64_t k = 0; k < n_k; k += 2 * LANES) {
            const __mmask16 low = first16(n_k - k), high = first16(n_k - k - LANES);
            __m512i tile[16];
            EACH(r, 16)
            {
                const bool there = j + r < columns;
                const float *at = w + (c + j + r) * n_k + k;
                const __m512 a = _mm512_maskz_loadu_ps(there ? low : 0, at);
                const __m512 b = _mm512_maskz_loadu_ps(there ? high : 0, at + LANES);
                tile[r] = (__m512i)_mm512_cvtne2ps_pbh(b, a);
            }
            turn(tile);
            EACH(r, 16)
            if (k / 2 + r < pairs) _mm512_storeu_si512(to + (k / 2 + r) * width + j, tile[r]);
        }
}

/* Shapes ------------------------------------------------------------------------------------- */

typedef struct dims {
    int64_t c, k, places; /* of one row of the output */
    /* Of a strided window, else line is 0. In values: */
    int64_t row, line, step, width;
} dims;

static dims dims_of(const keel_node *n)
{
    const keel_shape *w = &n->weight[0].shape;
    dims d = { .c = w->dim[w->rank - 2], .k = w->dim[w->rank - 1] };
    d.places = keel_row_count(&n->out) / d.k;
    if (w->rank == 4) {
        const keel_conv2d_args *a = n->args;
        const int64_t *x = n->in[0].shape.dim;
        d.row = x[0] * x[1] * d.c;
        d.width = n->out.shape.dim[1];
        d.step = a->strides[1] * d.c;
        if (a->strides[0] > 1 || a->strides[1] > 1) d.line = a->strides[0] * x[1] * d.c;
    }
    return d;
}

static int64_t place_at(const dims *d, int64_t place) /* of the pixel that a strided window sees */
{
    const int64_t row = place / d->places, i = place % d->places;
    return row * d->row + i / d->width * d->line + i % d->width * d->step;
}

/* Prepare ------------------------------------------------------------------------------------ */

/* Packed copies of the weights pay where many rows of values share them and no panel is packed by a
 * call; they are made again after each step. A call on few rows packs a panel into its scratch. */
typedef struct packed {
    int64_t c, k;
} packed;

static void refresh(const keel_derived *d, const void *weight)
{
    const packed *s = d->plan;
    uint32_t *to = d->data;
    for (int64_t k = 0; k < s->k; k += PANEL) {
        const int64_t columns = s->k - k < PANEL ? s->k - k : PANEL;
        pack_panel(to, weight, s->c, s->k, k, columns);
        to += (s->c + 1) / 2 * PANEL;
    }
}

static void refresh_turned(const keel_derived *d, const void *weight)
{
    const packed *s = d->plan;
    uint32_t *to = d->data;
    for (int64_t c = 0; c < s->c; c += PANEL) {
        const int64_t columns = s->c - c < PANEL ? s->c - c : PANEL;
        pack_turned(to, weight, s->k, c, columns);
        to += (s->k + 1) / 2 * PANEL;
    }
}

static keel_status derive(keel_prepare *p, const dims *d, const keel_derived **got)
{
    const bool turned = p->pass == KEEL_BACKWARD;
    const int64_t inner = turned ? d->k : d->c, columns = turned ? d->c : d->k;
    packed *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    *s = (packed){ d->c, d->k };
    keel_derived want = { .bytes = (size_t)((inner + 1) / 2 * up(columns, LANES)) * 4,
                          .key = turned ? 0x5041495253205754 : 0x5041495253202057,
                          .refresh = turned ? refresh_turned : refresh,
                          .release = keel_free,
                          .plan = s };
    return p->derive(p->context, &want, got);
}

enum { PAIRS = 128, X_MOST = 512, TILE_MOST = 64 }; /* of a weight gradient: see weights_of */

keel_status keel_product_bf16_prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    if (n->real != KEEL_FLOAT32 || n->held != KEEL_BFLOAT16 || n->in[0].dtype != KEEL_BFLOAT16 ||
        p->rows < 1 || p->pass > KEEL_WEIGHTS || !keel_cpu_bf16())
        return KEEL_EUNSUP;
    const dims d = dims_of(n);
    const int64_t places = p->rows * d.places;
    p->scratch = 0;
    p->plan = NULL;
    if (p->pass == KEEL_WEIGHTS) p->scratch = PAIRS * ((X_MOST + LANES) + PANEL) * 4;
    if (d.line) p->scratch += up(places * d.c * (int64_t)sizeof(keel_bf16), 64);
    if (p->pass == KEEL_WEIGHTS) return KEEL_OK;
    if (d.places > 1 || d.line) {
        const keel_derived *got;
        KEEL_TRY(derive(p, &d, &got));
        p->plan = (void *)got;
    } else {
        p->scratch += ((p->pass == KEEL_BACKWARD ? d.k : d.c) + 1) / 2 * PANEL * 4;
    }
    return KEEL_OK;
}

/* Run ---------------------------------------------------------------------------------------- */

/* y [n, columns] = x [n, inner] times the weights, or times them turned. Some rows at a time, that
 * stay in the cache while the panels pass. */
static void product(const keel_call *c, const dims *d, int64_t n, const keel_bf16 *x, bool turned,
                    const float *start, keel_bf16 *y, bool adds, uint32_t *panel_of_call)
{
    const keel_derived *copy = c->plan;
    const int64_t inner = turned ? d->k : d->c, columns = turned ? d->c : d->k;
    const int64_t pairs = (inner + 1) / 2, fit = up((128 << 10) / inner, 12);
    const int64_t some = copy && fit < n ? fit : n;
    for (int64_t i = 0; i < n; i += some) {
        const uint32_t *w = copy ? copy->data : panel_of_call;
        for (int64_t k = 0; k < columns; k += PANEL) {
            const int64_t width = columns - k < PANEL ? columns - k : PANEL;
            if (!copy && turned) pack_turned(panel_of_call, c->weight[0], d->k, k, width);
            if (!copy && !turned) pack_panel(panel_of_call, c->weight[0], d->c, d->k, k, width);
            const panel p = { .a = (const char *)(x + i * inner),
                              .a_row = inner * (int64_t)sizeof *x,
                              .a_step = 2 * sizeof *x,
                              .pairs = pairs,
                              .half = inner % 2,
                              .w = w,
                              .start = start ? start + k : NULL,
                              .out = y + i * columns + k,
                              .out_row = columns,
                              .adds = adds };
            multiply(&p, n - i < some ? n - i : some, width);
            if (copy) w += pairs * PANEL;
        }
    }
}

/* The pixels that a strided window sees, one after the other. */
static void gather(keel_bf16 *to, const keel_bf16 *x, const dims *d, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * d->c, x + place_at(d, i), (size_t)d->c * sizeof *to);
}

/* And back. */
static void scatter(keel_bf16 *to, const keel_bf16 *x, const dims *d, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + place_at(d, i), x + i * d->c, (size_t)d->c * sizeof *to);
}

void keel_product_bf16_forward(const keel_call *c)
{
    const dims d = dims_of(c->node);
    const int64_t n = c->rows * d.places;
    const keel_bf16 *x = c->in[0];
    if (d.line) {
        gather(c->scratch, x, &d, n);
        x = c->scratch;
    }
    product(c, &d, n, x, false, c->node->n_weight > 1 ? c->weight[1] : NULL, c->out, false,
            c->scratch);
}

void keel_product_bf16_backward(const keel_call *c)
{
    const dims d = dims_of(c->node);
    const int64_t n = c->rows * d.places;
    keel_bf16 *dx = c->in_grad[0];
    if (!dx) return;
    if (d.line && c->in_adds[0]) gather(c->scratch, dx, &d, n);
    product(c, &d, n, c->out_grad, true, NULL, d.line ? c->scratch : dx, c->in_adds[0], c->scratch);
    if (!d.line) return;
    /* pixels that no window sees have no gradient */
    if (!c->in_adds[0]) memset(dx, 0, (size_t)(c->rows * d.row) * sizeof *dx);
    scatter(dx, c->scratch, &d, n);
}

/* Weight gradients --------------------------------------------------------------------------- */

typedef struct cursor { /* places one after the other, through all spans */
    const keel_span *span, *end;
    int64_t at;
} cursor;

/* The next places, 2 PAIRS of them at most; NULL behind the last. Returns how many pairs. */
static int64_t next_pairs(cursor *u, int64_t n_x, int64_t n_dy, const keel_bf16 **x,
                          const keel_bf16 **dy)
{
    int64_t n = 0;
    while (n < 2 * PAIRS && u->span < u->end) {
        if (u->at == u->span->rows) {
            u->span++;
            u->at = 0;
            continue;
        }
        x[n] = (const keel_bf16 *)u->span->in + u->at * n_x;
        dy[n++] = (const keel_bf16 *)u->span->out_grad + u->at++ * n_dy;
    }
    if (n % 2) x[n] = dy[n] = NULL;
    return (n + 1) / 2;
}

/* Channels [first, first + count) of dW, from all places of the spans: pairs of both operands are
 * packed for as many places, channels and columns as the caches hold. x_pairs [PAIRS, most, a line
 * between rows for else they would share a set of the cache], dy_pairs [PAIRS, PANEL]. */
static void weights_of(const keel_span *span, int n_span, const dims *d, int64_t first,
                       int64_t count, float *dw, bool adds, uint32_t *x_pairs, int64_t most,
                       uint32_t *dy_pairs)
{
    const keel_bf16 *x[2 * PAIRS + 1], *dy[2 * PAIRS + 1];
    const int64_t x_row = most + LANES;
    for (int64_t c = 0; c < count; c += most) {
        const int64_t n_c = count - c < most ? count - c : most;
        cursor u = { span, span + n_span, 0 };
        bool goes_on = adds;
        for (int64_t pairs; (pairs = next_pairs(&u, d->c, d->k, x, dy)) > 0; goes_on = true) {
            for (int64_t i = 0; i < pairs; i++)
                pack_pair(x_pairs + i * x_row, x[2 * i] + first + c,
                          x[2 * i + 1] ? x[2 * i + 1] + first + c : NULL, n_c);
            for (int64_t k = 0; k < d->k; k += PANEL) {
                const int64_t width = d->k - k < PANEL ? d->k - k : PANEL;
                for (int64_t i = 0; i < pairs; i++)
                    pack_pair(dy_pairs + i * up(width, LANES), dy[2 * i] + k,
                              dy[2 * i + 1] ? dy[2 * i + 1] + k : NULL, width);
                const panel p = { .a = (const char *)x_pairs,
                                  .a_row = sizeof *x_pairs,
                                  .a_step = x_row * (int64_t)sizeof *x_pairs,
                                  .pairs = pairs,
                                  .w = dy_pairs,
                                  .out = dw + c * d->k + k,
                                  .out_row = d->k,
                                  .wide = true,
                                  .adds = goes_on };
                multiply(&p, n_c, width);
            }
        }
    }
}

/* Columns [k, k + count) of the bias's gradient: sums of dy over places, by stretches, so that
 * float32 does not lose the small to the large. */
static void bias_of(const keel_span *span, int n_span, int64_t n_k, int64_t k, int64_t count,
                    float *db, bool adds)
{
    enum { STRETCH = 128 };
    for (int64_t j = 0; j < count; j += LANES) {
        const __mmask16 m = first16(count - j);
        __m512 sum = adds ? _mm512_maskz_loadu_ps(m, db + j) : _mm512_setzero_ps();
        __m512 some = _mm512_setzero_ps();
        int64_t n = 0;
        for (int s = 0; s < n_span; s++) {
            const keel_bf16 *dy = (const keel_bf16 *)span[s].out_grad + k + j;
            for (int64_t i = 0; i < span[s].rows; i++, dy += n_k) {
                some = _mm512_add_ps(some, widened(_mm256_maskz_loadu_epi16(m, dy)));
                if (++n % STRETCH) continue;
                sum = _mm512_add_ps(sum, some);
                some = _mm512_setzero_ps();
            }
        }
        _mm512_mask_storeu_ps(db + j, m, _mm512_add_ps(sum, some));
    }
}

void keel_product_bf16_weights(const keel_call *c)
{
    const dims d = dims_of(c->node);
    const int64_t n = c->rows * d.places;
    keel_bf16 *gathered = (keel_bf16 *)((uint32_t *)c->scratch + PAIRS * (X_MOST + LANES + PANEL));
    uint32_t *const x_pairs = c->scratch;
    keel_span all = { .in = c->in[0], .out_grad = c->out_grad, .rows = n };
    float *dw = c->weight_grad[0], *db = c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    if (dw && d.line) {
        gather(gathered, c->in[0], &d, n);
        all.in = gathered;
    }
    if (dw)
        weights_of(&all, 1, &d, 0, d.c, dw, c->weight_adds, x_pairs, X_MOST,
                   x_pairs + PAIRS * (X_MOST + LANES));
    if (db) bias_of(&all, 1, d.k, 0, d.k, db, c->weight_adds);
}

void keel_product_bf16_tile(const keel_tile_call *c)
{
    const dims d = dims_of(c->node);
    _Alignas(64) uint32_t x_pairs[PAIRS * (TILE_MOST + LANES)], dy_pairs[PAIRS * PANEL];
    if (c->weight != 0) {
        bias_of(c->span, c->n_span, d.k, c->first, c->count, c->grad, false);
        return;
    }
    weights_of(c->span, c->n_span, &d, c->first / d.k, c->count / d.k, c->grad, false, x_pairs,
               TILE_MOST, dy_pairs);
}
