/* Dense in float32, on rows of one place: three products that share one kernel.
 *
 *     forward   y  [B, K] = x  [B, C] W  [C, K] + b
 *     backward  dx [B, C] = dy [B, K] Wt [K, C]     Wt a transposed copy, made when weights move
 *     weights   dW [C, K] = xt [C, B] dy [B, K]     a tile of it, over everybody's rows
 *
 * A block of ROWS x (VECTORS * LANES) sums stays in registers while the inner dim runs; W is read
 * in place, row after row, and nothing is packed. Every sum takes its terms one after the other, so
 * that an element does not depend on how many rows, or which part of them, a call has: one device
 * and many give the same bits. */
#include "base/memory.h"
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

typedef struct plan {
    int64_t c, k;
    const keel_derived *transposed; /* [K, C] */
} plan;

/* 8 x 8 numbers, in registers: pairs, fours, halves. */
static void transpose_8(const float *w, int64_t w_row, float *t, int64_t t_row)
{
    __m256 a[8], b[8];
    EACH(i, 8) a[i] = _mm256_loadu_ps(w + i * w_row);
    EACH(i, 4)
    {
        b[2 * i] = _mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]);
    }
    EACH(i, 2)
    {
        a[4 * i] = _mm256_shuffle_ps(b[4 * i], b[4 * i + 2], 0x44);
        a[4 * i + 1] = _mm256_shuffle_ps(b[4 * i], b[4 * i + 2], 0xee);
        a[4 * i + 2] = _mm256_shuffle_ps(b[4 * i + 1], b[4 * i + 3], 0x44);
        a[4 * i + 3] = _mm256_shuffle_ps(b[4 * i + 1], b[4 * i + 3], 0xee);
    }
    EACH(i, 4)
    {
        _mm256_storeu_ps(t + i * t_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(t + (i + 4) * t_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}

static void transpose(const keel_derived *d, const void *weight)
{
    const plan *size = d->plan;
    const int64_t c = size->c, k = size->k, whole = k / 8 * 8;
    const float *w = weight;
    float *t = d->data;
    int64_t i = 0;
    for (; i + 8 <= c; i += 8) {
        for (int64_t j = 0; j < whole; j += 8) transpose_8(w + i * k + j, k, t + j * c + i, c);
        for (int64_t j = whole; j < k; j++)
            for (int64_t l = i; l < i + 8; l++) t[j * c + l] = w[l * k + j];
    }
    for (; i < c; i++)
        for (int64_t j = 0; j < k; j++) t[j * c + i] = w[i * k + j];
}

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    const int64_t *w = n->weight[0].shape.dim;
    KEEL_TRY(vector_prepare(p));
    if (n->in[0].shape.rank != 1) return KEEL_EUNSUP; /* many places: a packed product is faster */
    if (p->pass != KEEL_BACKWARD) return KEEL_OK;
    plan *mine = keel_calloc(1, sizeof *mine), *copy = keel_calloc(1, sizeof *copy);
    keel_status s = KEEL_ENOMEM;
    if (!mine || !copy) goto out;
    *mine = *copy = (plan){ .c = w[0], .k = w[1] };
    keel_derived want = { .bytes = (size_t)(w[0] * w[1]) * sizeof(float),
                          .key = 0x7472616e73706f73, /* not the hash of a layout */
                          .refresh = transpose,
                          .release = keel_free,
                          .plan = copy };
    copy = NULL; /* derive owns it from here on */
    if ((s = p->derive(p->context, &want, &mine->transposed)) < 0) goto out;
    p->plan = mine;
    mine = NULL;
out:
    keel_free(mine);
    keel_free(copy);
    return s;
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
    const plan *pl = c->plan;
    if (!c->in_grad[0]) return;
    const product p = { .a = c->out_grad,
                        .a_row = pl->k,
                        .a_step = 1,
                        .b = pl->transposed->data,
                        .b_row = pl->c,
                        .inner = pl->k,
                        .out = c->in_grad[0],
                        .out_row = pl->c,
                        .adds = c->in_adds[0] };
    multiply(&p, c->rows, pl->c);
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
    .release = keel_free,
};
