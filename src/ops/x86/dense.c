/* Dense in float32, on rows of one place: three products.
 *
 *     forward   y  [B, K] = x  [B, C] W  [C, K] + b
 *     backward  dx [B, C] = dy [B, K] Wt [K, C]
 *     weights   dW [C, K] = xt [C, B] dy [B, K]     a tile of it, over everybody's rows
 *
 * A block of ROWS x (VECTORS * LANES) sums stays in registers while the inner dim runs, DEPTH rows
 * of W at a time; W is read in place, row after row, and nothing is packed. Every sum takes its
 * terms one after the other, so that an element does not depend on how many rows, or which part of
 * them, a call has: one device and many give the same bits. */
#include "ops/x86/_fetch.h"
#include "ops/x86/_vector.h"
#include <math.h>

/* The sums of a block fill the registers, but for those that hold factors. LINE: bytes of a cache
 * line. */
enum { ROWS = LANES == 16 ? 8 : 4, VECTORS = 3, PANEL = VECTORS * LANES, LINE = 64 };

/* Rows of b in a block of depth, and how many rows ahead b is prefetched. In a weight whose rows
 * are a power of two apart, the lines of a panel of columns are in few sets of the caches: those of
 * all its rows would not stay even in the second level, and those of a block do not stay in the
 * first. Measured on 784>512 (AVX-512, an Intel processor of 2 MiB): blocks of 112 to 400 rows and
 * 4 to 16 rows ahead are within 5 % of each other. */
enum { DEPTH = 256, AHEAD = 8 };

/* While a block of depth is multiplied with all rows, the one that follows is prefetched into the
 * second-level cache, some of its rows in every STEPS steps: the first rows would wait for all of
 * it to come from memory, or from the core that has updated it. */
enum { STEPS = 16 };

/* A run of the inner dim: a[i, j] at a + i * a_row + j * a_step, b[j, k] at b + j * b_row + k. */
typedef struct run {
    const float *a, *b;
    int64_t inner;
} run;

typedef struct product {
    const run *run; /* n_run stretches of the inner dim; sums go on from one to the next */
    int n_run;
    const float *start; /* [K], what sums begin with; NULL: 0 */
    int64_t a_row, a_step, b_row;
    float *out;
    int64_t out_row;
    bool adds;            /* sums begin with what `out` holds */
    const float *soon;    /* rows of b in the panel that is multiplied next, */
    int soon_rows;        /* of which so many are prefetched in STEPS steps */
    bool bad;             /* of a tile: a sum is not finite */
    const char *prefetch; /* memory that is written next; each step prefetches `pace` bytes of it */
    int64_t pace;
    const keel_tile_call *call;
    int asked; /* how many of the call's `prefetch` areas have been prefetched whole */
} product;

static inline bool not_finite(vf x)
{
#ifdef __AVX512F__
    return _mm512_fpclass_ps_mask(x, 0x99); /* both infinities, both kinds of NaN */
#else
    const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
    return _mm256_movemask_ps(_mm256_cmp_ps(size, _mm256_set1_ps(INFINITY), _CMP_NLT_UQ));
#endif
}

/* Goes on from `prefetch`; behind the end of an area, with the next one. */
static inline void ask_on(product *p, const char *prefetch)
{
    const keel_tile_call *c = p->call;
    p->prefetch = prefetch;
    if (prefetch < (const char *)c->prefetch[p->asked] + c->count * (int64_t)sizeof(float)) return;
    if (++p->asked < c->n_prefetch)
        p->prefetch = c->prefetch[p->asked];
    else
        p->asked = 0, p->pace = 0;
}

/* The sums of `rows` rows from i on and of `vectors` vectors of columns from k on; the last vector
 * has the lanes of `last`. rows, vectors and tile are constants at each call. */
INLINE void block(product *p, int64_t i, int64_t k, const int rows, const int vectors, vm last,
                  const bool tile)
{
    const char *prefetch = p->prefetch;
    const float *soon = p->soon;
    vf sum[ROWS][VECTORS], w[VECTORS];
    const vm all = vm_first(LANES);
    EACH(v, vectors) w[v] = vf_zero();
    if (p->start)
        EACH(v, vectors)
            w[v] = vf_load_some(v < vectors - 1 ? all : last, p->start + k + v * LANES);
    EACH(r, rows)
        EACH(v, vectors) {
            const float *out = p->out + (i + r) * p->out_row + k + v * LANES;
            sum[r][v] = p->adds ? vf_load_some(v < vectors - 1 ? all : last, out) : w[v];
        }
    for (int s = 0; s < p->n_run; s++) {
        const float *a = p->run[s].a + i * p->a_row, *b = p->run[s].b + k;
        for (int64_t j = 0; j < p->run[s].inner; j++, a += p->a_step, b += p->b_row) {
            if (!tile && j % STEPS == 0)
                for (int q = 0; q < p->soon_rows; q++, soon += p->b_row)
                    EACH(v, VECTORS) __builtin_prefetch(soon + v * LANES, 0, 2);
            if (tile) {
                for (int64_t at = 0; at < p->pace; at += LINE) fetch_to_write(prefetch + at);
                prefetch += p->pace;
            } else if (vectors > 1) {
                EACH(v, vectors) __builtin_prefetch(b + AHEAD * p->b_row + v * LANES, 0, 3);
            }
            EACH(v, vectors - 1) w[v] = vf_load(b + v * LANES);
            w[vectors - 1] = vf_load_some(last, b + (vectors - 1) * LANES);
            EACH(r, rows) {
                const vf x = vf_set(a[r * p->a_row]);
                EACH(v, vectors) sum[r][v] = vf_fma(x, w[v], sum[r][v]);
            }
        }
    }
    EACH(r, rows)
        EACH(v, vectors) {
            float *out = p->out + (i + r) * p->out_row + k + v * LANES;
            vf_store_some(v < vectors - 1 ? all : last, out, sum[r][v]);
            if (tile) p->bad |= not_finite(sum[r][v]);
        }
    p->soon = soon;
    if (tile) ask_on(p, prefetch);
}

/* The sums of n rows in the panel of columns from k on. */
INLINE void rows_of(product *p, int64_t n, int64_t k, const int vectors, vm last, const bool tile)
{
    int64_t i = 0;
    for (; i + ROWS <= n; i += ROWS) block(p, i, k, ROWS, vectors, last, tile);
    if (ROWS > 4 && i + 4 <= n) {
        block(p, i, k, 4, vectors, last, tile);
        i += 4;
    }
    if (i + 2 <= n) {
        block(p, i, k, 2, vectors, last, tile);
        i += 2;
    }
    if (i < n) block(p, i, k, 1, vectors, last, tile);
}

/* What follows the panel of columns from k on: the next panel, or the first of the next block of
 * depth. Few rows are multiplied so soon that prefetching would only add to the waiting. */
static inline void look_ahead(product *p, int64_t n, int64_t k, int64_t width)
{
    const int64_t inner = p->run->inner, times = n / ROWS * ((inner + STEPS - 1) / STEPS);
    const bool last = k + PANEL >= width;
    p->soon = p->run->b + (last ? inner * p->b_row : k + PANEL);
    p->soon_rows = n < 2 * ROWS ? 0 : (int)((inner + times - 1) / times);
}

/* out [n, width]: a panel of columns at a time, whose part of b stays in the cache for all rows. */
INLINE void multiply_as(product *p, int64_t n, int64_t width, const bool tile)
{
    const vm all = vm_first(LANES);
    int64_t k = 0;
    for (; k + PANEL <= width; k += PANEL) {
        if (!tile) look_ahead(p, n, k, width);
        rows_of(p, n, k, VECTORS, all, tile);
    }
    p->soon_rows = 0;
    const int64_t left = width - k;
    if (left > 2 * LANES)
        rows_of(p, n, k, 3, vm_first(left - 2 * LANES), tile);
    else if (left > LANES)
        rows_of(p, n, k, 2, vm_first(left - LANES), tile);
    else if (left > 0)
        rows_of(p, n, k, 1, vm_first(left), tile);
}

/* Not inline: the compiler would keep the places of all rows in registers that it does not have. */
static __attribute__((noinline)) void multiply_block(product *p, int64_t n, int64_t width)
{
    multiply_as(p, n, width, false);
}

/* One run, in blocks of at most DEPTH rows of b. A sum that goes on is read from `out`, where it
 * has the same bits. */
static void multiply(product *p, int64_t n, int64_t width)
{
    const run *whole = p->run;
    const int64_t blocks = (whole->inner + DEPTH - 1) / DEPTH;
    for (int64_t s = 0, j = 0, end; s < blocks; s++, j = end) {
        end = whole->inner * (s + 1) / blocks;
        const run part = { whole->a + j * p->a_step, whole->b + j * p->b_row, end - j };
        product q = *p;
        q.run = &part;
        q.adds = p->adds || j > 0;
        multiply_block(&q, n, width);
    }
}

static void multiply_tile(product *p, int64_t n, int64_t width)
{
    multiply_as(p, n, width, true);
}

/* Backward reads W in place: an element of dx is the dot of a row of W with a row of dy. A
 * transposed copy would be faster to multiply with. But it must be written anew in each step, into
 * cache lines that every core has read, and that costs more. */
enum { DOT_ROWS = 4, DOT_COLUMNS = 4, DOT_FLOATS = 8192 };

/* The sum of each of four vectors, in each lane of 128 bits. */
static inline vf sums_in_lanes(vf a, vf b, vf c, vf d)
{
#ifdef __AVX512F__
#define PAIRS(x, y) vf_add(_mm512_unpacklo_ps(x, y), _mm512_unpackhi_ps(x, y))
    const __m512d ab = _mm512_castps_pd(PAIRS(a, b)), cd = _mm512_castps_pd(PAIRS(c, d));
    return vf_add(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
                  _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
#undef PAIRS
#else
    return _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
#endif
}

/* The lanes of 128 bits of four vectors, added up. */
static inline void sums_of_lanes(const vf of[4], __m128 sum[4])
{
#ifdef __AVX512F__
#define LANES_OF(x, y, low, high)                                                                  \
    vf_add(_mm512_shuffle_f32x4(x, y, low), _mm512_shuffle_f32x4(x, y, high))
    const vf all = LANES_OF(LANES_OF(of[0], of[1], 0x44, 0xee), LANES_OF(of[2], of[3], 0x44, 0xee),
                            0x88, 0xdd);
    sum[0] = _mm512_castps512_ps128(all);
    sum[1] = _mm512_extractf32x4_ps(all, 1);
    sum[2] = _mm512_extractf32x4_ps(all, 2);
    sum[3] = _mm512_extractf32x4_ps(all, 3);
#undef LANES_OF
#else
    EACH(r, 4) sum[r] = _mm_add_ps(_mm256_castps256_ps128(of[r]), _mm256_extractf128_ps(of[r], 1));
#endif
}

/* `rows` x `columns` elements of dx, or what is added to them. rows and columns are constants at
 * each call. ahead: a row of W that is read soon, to be prefetched. */
INLINE void dots(const float *dy, const float *w, int64_t k, float *dx, int64_t c, bool adds,
                 const int rows, const int columns, const float *ahead)
{
    vf sum[DOT_ROWS][DOT_COLUMNS];
    EACH(r, DOT_ROWS)
        EACH(j, DOT_COLUMNS) sum[r][j] = vf_zero();
    VECTOR_EACH(at, k, m, {
        vf of_w[DOT_COLUMNS];
        __builtin_prefetch(ahead + at, 0, 3);
        EACH(j, columns) of_w[j] = vf_load_some(m, w + j * k + at);
        EACH(r, rows) {
            const vf of_dy = vf_load_some(m, dy + r * k + at);
            EACH(j, columns) sum[r][j] = vf_fma(of_dy, of_w[j], sum[r][j]);
        }
    });
    vf in_lanes[DOT_ROWS];
    __m128 out[DOT_ROWS];
    EACH(r, DOT_ROWS) in_lanes[r] = sums_in_lanes(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
    sums_of_lanes(in_lanes, out);
    EACH(r, rows) {
        float *to = dx + r * c;
        if (columns == DOT_COLUMNS)
            _mm_storeu_ps(to, adds ? _mm_add_ps(_mm_loadu_ps(to), out[r]) : out[r]);
        else
            *to = adds ? *to + _mm_cvtss_f32(out[r]) : _mm_cvtss_f32(out[r]);
    }
}

/* `columns` elements of n rows of dx. more: rows of W follow, of which each block of rows
 * prefetches one. */
INLINE void dot_rows(const float *dy, int64_t n, const float *w, int64_t k, float *dx, int64_t c,
                     bool adds, const int columns, bool more)
{
    int64_t i = 0, ahead = 0;
    for (; i + DOT_ROWS <= n; i += DOT_ROWS, ahead++)
        dots(dy + i * k, w, k, dx + i * c, c, adds, DOT_ROWS, columns,
             more && ahead < DOT_COLUMNS ? w + (DOT_COLUMNS + ahead) * k : w);
    for (; i < n; i++) dots(dy + i * k, w, k, dx + i * c, c, adds, 1, columns, w);
}

#include "ops/x86/_dense_tiles.h"

KEEL_USES_OP(dense);

static bool is_short(const keel_node *n)
{
    return n->weight[0].shape.dim[1] <= 2 * LANES;
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    if (p->pass == KEEL_BACKWARD && is_short(p->node) && p->node->weight[0].shape.dim[1] > 1)
        p->scratch = keel_row_count(&p->node->weight[0]) * (int64_t)sizeof(float);
    if (p->pass == KEEL_WEIGHTS) {
        const int64_t n_k = p->node->weight[0].shape.dim[1];
        p->scratch = kept_bytes(p->rows, n_k) < KEPT_MOST ? kept_bytes(p->rows, n_k) : KEPT_MOST;
    }
    /* rows of many places are left to kernels that pack their operands */
    return p->node->in[0].shape.rank == 1 ? KEEL_OK : KEEL_EUNSUP;
}

/* For one output, which is a dot of two rows: as one column of a product it would take a lane of
 * each vector. */
static void forward_one(const keel_call *c)
{
    const int64_t n_c = c->node->weight[0].shape.dim[0];
    const float *bias = c->node->n_weight > 1 ? c->weight[1] : NULL;
    float *y = c->out[0];
    for (int64_t i = 0; bias && i < c->rows; i++) y[i] = *bias;
    dot_rows(c->in[0], c->rows, c->weight[0], n_c, y, 1, bias, 1, false);
}

static void forward(const keel_call *c)
{
    const int64_t *w = c->node->weight[0].shape.dim;
    if (w[1] == 1) {
        forward_one(c);
        return;
    }
    const run all = { c->in[0], c->weight[0], w[0] };
    product p = { .run = &all,
                  .n_run = 1,
                  .a_row = w[0],
                  .a_step = 1,
                  .b_row = w[1],
                  .start = c->node->n_weight > 1 ? c->weight[1] : NULL,
                  .out = c->out[0],
                  .out_row = w[1] };
    multiply(&p, c->rows, w[1]);
}

/* For one output. A band of W stays in the cache while all rows of dx are written. */
static void backward_one(const keel_call *c)
{
    enum { BAND = 4096 };
    const int64_t n_c = c->node->weight[0].shape.dim[0];
    const float *dy = c->out_grad[0], *w = c->weight[0];
    const bool adds = c->in_adds[0];
    for (int64_t at = 0; at < n_c; at += BAND)
        for (int64_t i = 0; i < c->rows; i++) {
            float *dx = (float *)c->in_grad[0] + i * n_c + at;
            const vf of_dy = vf_set(dy[i]);
            VECTOR_EACH(k, n_c - at < BAND ? n_c - at : BAND, m, {
                const vf was = adds ? vf_load_some(m, dx + k) : vf_zero();
                vf_store_some(m, dx + k, vf_fma(of_dy, vf_load_some(m, w + at + k), was));
            });
        }
}

/* For few outputs. Dots would be so short that adding up the lanes of a vector would cost most; W
 * is small, and quickly transposed. */
static void backward_short(const keel_call *c)
{
    const int64_t n_c = c->node->weight[0].shape.dim[0], k = c->node->weight[0].shape.dim[1];
    const float *w = c->weight[0];
    float *turned = c->scratch;
    for (int64_t i = 0; i < n_c; i++)
        for (int64_t j = 0; j < k; j++) turned[j * n_c + i] = w[i * k + j];
    const run all = { c->out_grad[0], turned, k };
    product p = { .run = &all,
                  .n_run = 1,
                  .a_row = k,
                  .a_step = 1,
                  .b_row = n_c,
                  .out = c->in_grad[0],
                  .out_row = n_c,
                  .adds = c->in_adds[0] };
    multiply(&p, c->rows, n_c);
}

static void backward(const keel_call *c)
{
    const int64_t n_c = c->node->weight[0].shape.dim[0], k = c->node->weight[0].shape.dim[1];
    const float *w = c->weight[0];
    const bool adds = c->in_adds[0];
    if (!c->in_grad[0]) return;
    if (k == 1) {
        backward_one(c);
        return;
    }
    if (is_short(c->node)) {
        backward_short(c);
        return;
    }
    /* rows of dy that stay in the first-level cache while all of W is read */
    const int64_t most = DOT_FLOATS / k / DOT_ROWS * DOT_ROWS;
    for (int64_t i = 0, n; i < c->rows; i += n) {
        n = most < DOT_ROWS ? DOT_ROWS : most;
        if (n > c->rows - i) n = c->rows - i;
        const float *dy = (const float *)c->out_grad[0] + i * k;
        float *dx = (float *)c->in_grad[0] + i * n_c;
        int64_t j = 0;
        for (; j + DOT_COLUMNS <= n_c; j += DOT_COLUMNS)
            dot_rows(dy, n, w + j * k, k, dx + j, n_c, adds, DOT_COLUMNS,
                     j + 2 * DOT_COLUMNS <= n_c);
        for (; j < n_c; j++) dot_rows(dy, n, w + j * k, k, dx + j, n_c, adds, 1, false);
    }
}

/* The gradient of the bias: dy summed over rows. */
static void bias_tile(const keel_tile_call *c)
{
    const int64_t n_k = c->node->weight[0].shape.dim[1];
    float *grad = c->grad;
    VECTOR_EACH(k, c->count, m, {
        vf sum = vf_zero();
        for (int s = 0; s < c->n_span; s++) {
            const float *dy = (const float *)c->span[s].out_grad + c->first + k;
            for (int64_t i = 0; i < c->span[s].rows; i++, dy += n_k)
                sum = vf_add(sum, vf_load_some(m, dy));
        }
        vf_store_some(m, grad + k, sum);
    });
}

/* The same sums take the rows of all workers, one worker after the other. */
static void weights_tile(const keel_tile_call *c)
{
    enum { RUNS = 16 };
    run runs[RUNS];
    const int64_t n_c = c->node->weight[0].shape.dim[0], n_k = c->node->weight[0].shape.dim[1];
    if (c->weight != 0) {
        bias_tile(c);
        return;
    }
    if (n_k > 1 && tiles(c)) return;
    const int64_t n = c->count / n_k;
    const bool one = n_k == 1; /* dW lies like its transpose, a row of many columns: dyt x */
    const int64_t height = one ? 1 : n, width = one ? n : n_k;
    const int64_t blocks = ((height + ROWS - 1) / ROWS) * ((width - 1) / PANEL + 1);
    for (int from = 0; from < c->n_span; from += RUNS) {
        product p = { .run = runs,
                      .a_row = 1,
                      .a_step = one ? 1 : n_c,
                      .b_row = one ? n_c : n_k,
                      .out = c->grad,
                      .out_row = width,
                      .adds = from > 0,
                      .prefetch = c->prefetch[0],
                      .call = c };
        int64_t rows = 0;
        for (; p.n_run < RUNS && from + p.n_run < c->n_span; p.n_run++) {
            const keel_span *span = &c->span[from + p.n_run];
            const float *x = (const float *)span->in + c->first / n_k;
            runs[p.n_run] = one ? (run){ span->out_grad, x, span->rows }
                                : (run){ x, span->out_grad, span->rows };
            rows += span->rows;
        }
        p.pace = c->n_prefetch * c->count * (int64_t)sizeof(float) / (blocks * rows + 1);
        multiply_tile(&p, height, width);
        if (c->checked && from + p.n_run == c->n_span) {
            *c->checked = true;
            *c->bad = p.bad;
        }
    }
}

const keel_kernel VECTOR_KERNEL(dense) = {
    .op = &keel_op_dense,
    .name = VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(OWN),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
    .weights_tile = weights_tile,
    .tile_rows = ROWS,
};
