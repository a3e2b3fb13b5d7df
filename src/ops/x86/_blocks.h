/* Products of float32 matrices, for convolutions that are such products. A block of rows x columns
 * of sums stays in registers while the inner dim runs. A sum adds its terms one after another,
 * whatever rows are beside it. Either operand may lie anywhere: x and dy are read in place. */
#ifndef KEEL_OPS_X86_BLOCKS_H
#define KEEL_OPS_X86_BLOCKS_H
#include "ops/x86/_fetch.h"
#include "ops/x86/_vector.h"

#ifdef __AVX512F__
enum { VECTORS = 4, ROWS_MOST = 12 };
#define ROWS_OF(vectors) ((vectors) == 4 ? 6 : (vectors) == 3 ? 8 : 12)
#else
enum { VECTORS = 2, ROWS_MOST = 8 };
#define ROWS_OF(vectors) ((vectors) == 2 ? 6 : 8)
#endif
enum { PANEL = VECTORS * LANES, LINE = 64 };

static inline int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

/* Memory to prefetch: at each step a block prefetches one line; lines are `pace` bytes apart, and
 * the next block takes the lines after those. */
typedef struct ask {
    const char *first;
    int64_t pace, blocks;
} ask;

/* a[i, j] at a + (row i) + j * a_step, w[j, k] at w + j * w_row + k, out[i, k] at out + (row i) +
 * k; rows are a_row and out_row apart, or where a_place and out_place say. */
typedef struct product {
    const float *a, *w;
    int64_t a_row, a_step, w_row, inner;
    float *out;
    int64_t out_row;
    const int64_t *a_place, *out_place;
    const float *start; /* what sums begin with; NULL: 0 */
    bool resumes;       /* sums begin with what is in out */
    bool adds;          /* what is in out is added to sums */
    ask ask[2];         /* of the blocks: first lines of one, then of the other */
    int64_t ahead;      /* if not 0, a block prefetches rows of a instead, this many rows ahead */
} product;

/* rows and vectors are constants at each call; the last vector has the lanes of `last`. */
INLINE void block(const product *p, int64_t i, const char *prefetch, int64_t pace, const int rows,
                  const int vectors, vm last)
{
    vf sum[ROWS_MOST][VECTORS], w[VECTORS];
    const float *a[ROWS_MOST];
    float *out[ROWS_MOST];
    const float *at = p->w;
    const int64_t step = p->a_step, w_row = p->w_row;
    const vm all = vm_first(LANES);
#define MASK(v) ((v) < vectors - 1 ? all : last)
    EACH(r, rows) {
        a[r] = p->a + (p->a_place ? p->a_place[i + r] : (i + r) * p->a_row);
        out[r] = p->out + (p->out_place ? p->out_place[i + r] : (i + r) * p->out_row);
    }
    /* One branch for all sums: a branch for each would cost short inner dims some percent. */
    if (p->resumes) {
        EACH(r, rows)
            EACH(v, vectors) sum[r][v] = vf_load_some(MASK(v), out[r] + v * LANES);
    } else {
        EACH(v, vectors) w[v] = p->start ? vf_load_some(MASK(v), p->start + v * LANES) : vf_zero();
        EACH(r, rows)
            EACH(v, vectors) sum[r][v] = w[v];
    }
    EACH(r, rows)
        EACH(v, vectors) fetch_to_write(out[r] + v * LANES);
    for (int64_t j = 0, x = 0; j < p->inner; j++, x += step, at += w_row, prefetch += pace) {
        __builtin_prefetch(prefetch, 0, 2);
        EACH(v, vectors - 1) w[v] = vf_load(at + v * LANES);
        w[vectors - 1] = vf_load_some(last, at + (vectors - 1) * LANES);
        EACH(r, rows) {
            const vf one = vf_set(a[r][x]);
            EACH(v, vectors) sum[r][v] = vf_fma(one, w[v], sum[r][v]);
        }
    }
    if (p->adds) {
        EACH(r, rows)
            EACH(v, vectors)
                sum[r][v] = vf_add(vf_load_some(MASK(v), out[r] + v * LANES), sum[r][v]);
    }
    EACH(r, rows)
        EACH(v, vectors) vf_store_some(MASK(v), out[r] + v * LANES, sum[r][v]);
#undef MASK
}

/* A block for each number of rows and vectors whose sums fit into registers. */
#define BLOCK(v, r)                                                                                \
    static void block_##v##_##r(const product *p, int64_t i, const char *prefetch, int64_t pace,   \
                                vm last)                                                           \
    {                                                                                              \
        block(p, i, prefetch, pace, r, v, last);                                                   \
    }
#define BLOCKS_6(v)  BLOCK(v, 1) BLOCK(v, 2) BLOCK(v, 3) BLOCK(v, 4) BLOCK(v, 5) BLOCK(v, 6)
#define BLOCKS_8(v)  BLOCKS_6(v) BLOCK(v, 7) BLOCK(v, 8)
#define BLOCKS_12(v) BLOCKS_8(v) BLOCK(v, 9) BLOCK(v, 10) BLOCK(v, 11) BLOCK(v, 12)
#define NAMES_6(v)                                                                                 \
    block_##v##_1, block_##v##_2, block_##v##_3, block_##v##_4, block_##v##_5, block_##v##_6
#define NAMES_8(v)  NAMES_6(v), block_##v##_7, block_##v##_8
#define NAMES_12(v) NAMES_8(v), block_##v##_9, block_##v##_10, block_##v##_11, block_##v##_12
typedef void (*run_block)(const product *, int64_t, const char *, int64_t, vm);
#ifdef __AVX512F__
BLOCKS_12(1)
BLOCKS_12(2)
BLOCKS_8(3)
BLOCKS_6(4)
static const run_block blocks[VECTORS][ROWS_MOST] = {
    { NAMES_12(1) }, { NAMES_12(2) }, { NAMES_8(3) }, { NAMES_6(4) }
};
#else
BLOCKS_8(1)
BLOCKS_6(2)
static const run_block blocks[VECTORS][ROWS_MOST] = { { NAMES_8(1) }, { NAMES_6(2) } };
#endif

/* Rows 0 to n times a panel of at most PANEL columns, in blocks whose sizes differ by at most one
 * row. */
static void multiply(const product *p, int64_t n, int64_t columns)
{
    const int vectors = (int)((columns + LANES - 1) / LANES);
    const int64_t most = ROWS_OF(vectors), n_block = (n + most - 1) / most;
    const vm last = vm_first(columns - (vectors - 1) * LANES);
    for (int64_t b = 0, i = 0, end; b < n_block; b++, i = end) {
        end = n * (b + 1) / n_block;
        const ask *k = &p->ask[b >= p->ask[0].blocks];
        const int64_t at = b - (k == p->ask ? 0 : p->ask[0].blocks);
        const bool asks = at < k->blocks;
        const char *prefetch = asks ? k->first + at * LINE : (const char *)p->w;
        int64_t pace = asks ? k->pace : 0;
        if (p->ahead) {
            prefetch = (const char *)(p->a + (i + p->ahead) * p->a_row);
            pace = (end - i) * (int64_t)sizeof(float);
        }
        blocks[vectors - 1][end - i - 1](p, i, prefetch, pace, last);
    }
}

/* db [k] += the sums of dy [n, k]. */
static inline void add_bias(float *db, const float *dy, int64_t n, int64_t k)
{
    VECTOR_EACH(j, k, m, {
        vf sum = vf_zero();
        for (int64_t i = 0; i < n; i++) sum = vf_add(sum, vf_load_some(m, dy + i * k + j));
        vf_store_some(m, db + j, vf_add(vf_load_some(m, db + j), sum));
    });
}

#endif
