/* Dense in float32, on rows of one place: three products.
 *
 *     forward   y  [B, K] = x  [B, C] W  [C, K] + b
 *     backward  dx [B, C] = dy [B, K] Wt [K, C]
 *     weights   dW [C, K] = xt [C, B] dy [B, K]     a tile of it, over everybody's rows
 *
 * A block of ROWS x (VECTORS * LANES) sums stays in registers while the inner dim runs; W is read
 * in place, row after row, and nothing is packed. Every sum takes its terms one after the other, so
 * that an element does not depend on how many rows, or which part of them, a call has: one device
 * and many give the same bits. */
#include "ops/_vector.h"

enum { ROWS = 8, VECTORS = 3 };
#define INLINE static inline __attribute__((always_inline))
/* Unrolled, else sums would live in memory and not in registers. */
#define EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < (n); i++)

/* What one product reads: a[i, j] at a + i * a_row + j * a_step, b[j, k] at b + j * b_row + k. */
typedef struct product {
    const float *a, *b, *start; /* start [K]: what sums begin with; NULL: 0 */
    int64_t a_row, a_step, b_row, inner;
    float *out;
    int64_t out_row;
    bool adds; /* sums go on from what is in out */
} product;

/* rows and vectors are constants where this is called; the last vector has the lanes of `last`. */
INLINE void block(const product *p, int64_t i, int64_t k, const int rows, const int vectors,
                  vm last)
{
    vf sum[ROWS][VECTORS], w[VECTORS];
    const vm all = vm_first(LANES);
    const float *a = p->a + i * p->a_row, *b = p->b + k;
    EACH(v, vectors) w[v] = vf_zero();
    if (p->start) EACH(v, vectors)
    w[v] = vf_load_some(v < vectors - 1 ? all : last, p->start + k + v * LANES);
    EACH(r, rows) EACH(v, vectors)
    {
        const float *out = p->out + (i + r) * p->out_row + k + v * LANES;
        sum[r][v] = p->adds ? vf_load_some(v < vectors - 1 ? all : last, out) : w[v];
    }
    for (int64_t j = 0; j < p->inner; j++, a += p->a_step, b += p->b_row) {
        EACH(v, vectors - 1) w[v] = vf_load(b + v * LANES);
        w[vectors - 1] = vf_load_some(last, b + (vectors - 1) * LANES);
        EACH(r, rows)
        {
            const vf x = vf_set(a[r * p->a_row]);
            EACH(v, vectors) sum[r][v] = vf_fma(x, w[v], sum[r][v]);
        }
    }
    EACH(r, rows) EACH(v, vectors)
    {
        float *out = p->out + (i + r) * p->out_row + k + v * LANES;
        vf_store_some(v < vectors - 1 ? all : last, out, sum[r][v]);
    }
}

INLINE void rows_of(const product *p, int64_t n, int64_t k, const int vectors, vm last)
{
    int64_t i = 0;
    for (; i + ROWS <= n; i += ROWS) block(p, i, k, ROWS, vectors, last);
    if (i + 4 <= n) {
        block(p, i, k, 4, vectors, last);
        i += 4;
    }
    if (i + 2 <= n) {
        block(p, i, k, 2, vectors, last);
        i += 2;
    }
    if (i < n) block(p, i, k, 1, vectors, last);
}

/* out [n, width]: a panel of columns at a time, whose part of b stays in the cache for all rows. */
static void multiply(const product *p, int64_t n, int64_t width)
{
    const vm all = vm_first(LANES);
    int64_t k = 0;
    for (; k + VECTORS * LANES <= width; k += VECTORS * LANES) rows_of(p, n, k, VECTORS, all);
    const int64_t left = width - k;
    if (left > 2 * LANES)
        rows_of(p, n, k, 3, vm_first(left - 2 * LANES));
    else if (left > LANES)
        rows_of(p, n, k, 2, vm_first(left - LANES));
    else if (left > 0)
        rows_of(p, n, k, 1, vm_first(left));
}

/* Backward reads W as it lies, by dots of its rows with those of dy: a transposed copy would be
 * faster to multiply with, but to write it anew each step, into lines that every core has read,
 * costs more. */
enum { DOT_ROWS = 4, DOT_COLUMNS = 4 };

/* The sums of four vectors. */
static inline __m128 sums_of(vf a, vf b, vf c, vf d)
{
#ifdef __AVX512F__
#define HALVES(x) _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1))
#else
#define HALVES(x) (x)
#endif
    const __m256 ab = _mm256_hadd_ps(HALVES(a), HALVES(b));
    const __m256 all = _mm256_hadd_ps(ab, _mm256_hadd_ps(HALVES(c), HALVES(d)));
    return _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
}

/* dx[i .. i + rows, j .. j + columns] = dy W^T; rows and columns are constants where this is
 * called. */
INLINE void dots(const float *dy, const float *w, int64_t k, float *dx, int64_t c, bool adds,
                 const int rows, const int columns)
{
    vf sum[DOT_ROWS][DOT_COLUMNS];
    EACH(r, rows) EACH(j, DOT_COLUMNS) sum[r][j] = vf_zero();
    VECTOR_EACH(at, k, m, {
        vf of_w[DOT_COLUMNS];
        EACH(j, columns) of_w[j] = vf_load_some(m, w + j * k + at);
        EACH(r, rows)
        {
            const vf of_dy = vf_load_some(m, dy + r * k + at);
            EACH(j, columns) sum[r][j] = vf_fma(of_dy, of_w[j], sum[r][j]);
        }
    });
    EACH(r, rows)
    {
        float out[DOT_COLUMNS];
        _mm_storeu_ps(out, sums_of(sum[r][0], sum[r][1], sum[r][2], sum[r][3]));
        EACH(j, columns) dx[r * c + j] = adds ? dx[r * c + j] + out[j] : out[j];
    }
}

INLINE void dot_rows(const float *dy, int64_t n, const float *w, int64_t k, float *dx, int64_t c,
                     bool adds, const int columns)
{
    int64_t i = 0;
    for (; i + DOT_ROWS <= n; i += DOT_ROWS)
        dots(dy + i * k, w, k, dx + i * c, c, adds, DOT_ROWS, columns);
    for (; i < n; i++) dots(dy + i * k, w, k, dx + i * c, c, adds, 1, columns);
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    /* many places: a packed product is faster */
    return p->node->in[0].shape.rank == 1 ? KEEL_OK : KEEL_EUNSUP;
}

static void forward(const keel_call *c)
{
    const int64_t *w = c->node->weight[0].shape.dim;
    const product p = { .a = c->in[0],
                        .a_row = w[0],
                        .a_step = 1,
                        .b = c->weight[0],
                        .b_row = w[1],
                        .start = c->node->n_weight > 1 ? c->weight[1] : NULL,
                        .inner = w[0],
                        .out = c->out,
                        .out_row = w[1] };
    multiply(&p, c->rows, w[1]);
}

static void backward(const keel_call *c)
{
    const int64_t n_c = c->node->weight[0].shape.dim[0], k = c->node->weight[0].shape.dim[1];
    const float *w = c->weight[0], *dy = c->out_grad;
    float *dx = c->in_grad[0];
    int64_t j = 0;
    if (!dx) return;
    for (; j + DOT_COLUMNS <= n_c; j += DOT_COLUMNS)
        dot_rows(dy, c->rows, w + j * k, k, dx + j, n_c, c->in_adds[0], DOT_COLUMNS);
    for (; j < n_c; j++) dot_rows(dy, c->rows, w + j * k, k, dx + j, n_c, c->in_adds[0], 1);
}

/* The bias: sums of dy over rows. */
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

/* One span after the other: the sums of the second begin with those of the first. */
static void weights_tile(const keel_tile_call *c)
{
    const int64_t n_c = c->node->weight[0].shape.dim[0], n_k = c->node->weight[0].shape.dim[1];
    if (c->weight != 0) {
        bias_tile(c);
        return;
    }
    for (int s = 0; s < c->n_span; s++) {
        const product p = { .a = (const float *)c->span[s].in + c->first / n_k,
                            .a_row = 1,
                            .a_step = n_c,
                            .b = c->span[s].out_grad,
                            .b_row = n_k,
                            .inner = c->span[s].rows,
                            .out = c->grad,
                            .out_row = n_k,
                            .adds = s > 0 };
        multiply(&p, c->count / n_k, n_k);
    }
}

const keel_kernel VECTOR_KERNEL(dense) = {
    .op = "dense",
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY + 100, /* before a library's */
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
    .weights_tile = weights_tile,
};
