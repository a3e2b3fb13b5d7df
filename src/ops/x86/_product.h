/* Products of small matrices: blocks of rows x one or two vectors of sums stay in registers. Every
 * sum takes its terms one after the other, so its bits depend on nothing but its row of p and
 * column of q. */
#ifndef KEEL_OPS_X86_PRODUCT_H
#define KEEL_OPS_X86_PRODUCT_H
#include "ops/x86/_vector.h"

/* PANEL: columns of q that a block takes; of one vector only, a block has more rows, since two
 * multiply-adds at a time want at least eight sums. */
enum { PANEL = 2 * LANES, PRODUCT_ROWS = 6, PRODUCT_ROWS_ONE = 8 };

/* out [rows, columns] (+)= p q. Element (i, k) of p is p[i * p_row + k * p_step]; rows of q lie
 * q_row apart, rows of out out_row. */
typedef struct product {
    const float *p, *q;
    int64_t p_row, p_step, q_row, inner;
    int64_t rows, columns;
    float *out;
    int64_t out_row;
    bool adds;
} product;

/* rows, vectors and whole are constants where this is called; the last vector has the lanes of
 * `last`, all if whole. */
INLINE void product_block(const product *d, int64_t i0, int64_t k0, vm last, const int rows,
                          const int vectors, const bool whole)
{
    const int64_t step = d->p_step, q_row = d->q_row;
    const vm all = vm_first(LANES);
    const float *p[PRODUCT_ROWS_ONE], *q = d->q + k0;
    vf sum[PRODUCT_ROWS_ONE][2], each[2];
#define LAST(v) (whole || (v) < vectors - 1 ? all : last)
    EACH(i, rows) {
        p[i] = d->p + (i0 + i) * d->p_row;
        EACH(v, vectors) sum[i][v] = vf_zero();
    }
    for (int64_t k = 0, x = 0; k < d->inner; k++, x += step, q += q_row) {
        EACH(v, vectors) each[v] = vf_load_some(LAST(v), q + v * LANES);
        EACH(i, rows) {
            const vf one = vf_set(p[i][x]);
            EACH(v, vectors) sum[i][v] = vf_fma(one, each[v], sum[i][v]);
        }
    }
    float *const out = d->out + i0 * d->out_row + k0;
    if (d->adds) {
        EACH(i, rows)
            EACH(v, vectors)
                sum[i][v] =
                    vf_add(sum[i][v], vf_load_some(LAST(v), out + i * d->out_row + v * LANES));
    }
    EACH(i, rows)
        EACH(v, vectors) vf_store_some(LAST(v), out + i * d->out_row + v * LANES, sum[i][v]);
#undef LAST
}

/* A block for each number of rows and vectors. */
#define PRODUCT_BLOCK(v, r)                                                                        \
    static void product_block_##v##_##r(const product *d, int64_t i, int64_t k, vm last)           \
    {                                                                                              \
        product_block(d, i, k, last, r, v, false);                                                 \
    }                                                                                              \
    static void product_whole_##v##_##r(const product *d, int64_t i, int64_t k, vm last)           \
    {                                                                                              \
        product_block(d, i, k, last, r, v, true);                                                  \
    }
#define PRODUCT_BLOCKS(v)                                                                          \
    PRODUCT_BLOCK(v, 1)                                                                            \
    PRODUCT_BLOCK(v, 2)                                                                            \
    PRODUCT_BLOCK(v, 3) PRODUCT_BLOCK(v, 4) PRODUCT_BLOCK(v, 5) PRODUCT_BLOCK(v, 6)
PRODUCT_BLOCKS(1)
PRODUCT_BLOCK(1, 7)
PRODUCT_BLOCK(1, 8)
PRODUCT_BLOCKS(2)
#define PRODUCT_NAMES(kind, v)                                                                     \
    product_##kind##_##v##_1, product_##kind##_##v##_2, product_##kind##_##v##_3,                  \
        product_##kind##_##v##_4, product_##kind##_##v##_5, product_##kind##_##v##_6

/* Blocks whose sizes differ by at most one row. Panel after panel of q, which so stays in cache. */
static void multiply(const product *d)
{
    static void (*const blocks[2][2][PRODUCT_ROWS_ONE])(const product *, int64_t, int64_t, vm) = {
        { { PRODUCT_NAMES(block, 1), product_block_1_7, product_block_1_8 },
          { PRODUCT_NAMES(block, 2) } },
        { { PRODUCT_NAMES(whole, 1), product_whole_1_7, product_whole_1_8 },
          { PRODUCT_NAMES(whole, 2) } }
    };
    for (int64_t k = 0; k < d->columns; k += PANEL) {
        const int64_t left = d->columns - k;
        const int vectors = left > LANES ? 2 : 1;
        const int64_t most = vectors == 2 ? PRODUCT_ROWS : PRODUCT_ROWS_ONE;
        const int64_t in_last = left - (vectors - 1) * LANES, n = (d->rows + most - 1) / most;
        const vm last = vm_first(in_last);
        for (int64_t b = 0, i = 0, end; b < n; b++, i = end) {
            end = d->rows * (b + 1) / n;
            blocks[in_last >= LANES][vectors - 1][end - i - 1](d, i, k, last);
        }
    }
}

#endif
