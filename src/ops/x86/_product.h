/* Products of small matrices: blocks of ROWS x 2 vectors of sums stay in registers. Every sum takes
 * its terms one after the other, so its bits depend on nothing but its row of p and column of q. */
#ifndef KEEL_OPS_X86_PRODUCT_H
#define KEEL_OPS_X86_PRODUCT_H
#include "ops/x86/_vector.h"

enum { PRODUCT_ROWS = 6 };

/* out [rows, columns] (+)= p q. Element (i, k) of p is p[i * p_row + k * p_step]; rows of q and out
 * lie `columns` apart. */
typedef struct product {
    const float *p, *q;
    int64_t p_row, p_step, inner;
    int64_t rows, columns; /* of out, and of q */
    float *out;
    bool adds;
} product;

/* rows is a constant where this is called. */
INLINE void product_block(const product *d, int64_t i0, int64_t k0, const int rows)
{
    const int64_t n = d->columns, left = n - k0;
    const vm low = vm_first(left), high = vm_first(left > LANES ? left - LANES : 0);
    const float *p = d->p + i0 * d->p_row, *q = d->q + k0;
    vf sum[PRODUCT_ROWS][2];
    for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = vf_zero();
    for (int64_t k = 0; k < d->inner; k++, p += d->p_step, q += n) {
        const vf q0 = vf_load_some(low, q), q1 = vf_load_some(high, q + LANES);
        for (int i = 0; i < rows; i++) {
            const vf each = vf_set(p[i * d->p_row]);
            sum[i][0] = vf_fma(each, q0, sum[i][0]);
            sum[i][1] = vf_fma(each, q1, sum[i][1]);
        }
    }
    for (int i = 0; i < rows; i++) {
        float *to = d->out + (i0 + i) * n + k0;
        if (d->adds) {
            sum[i][0] = vf_add(sum[i][0], vf_load_some(low, to));
            sum[i][1] = vf_add(sum[i][1], vf_load_some(high, to + LANES));
        }
        vf_store_some(low, to, sum[i][0]);
        vf_store_some(high, to + LANES, sum[i][1]);
    }
}

static inline void multiply(const product *d)
{
    for (int64_t k = 0; k < d->columns; k += 2 * LANES) {
        int64_t i = 0;
        for (; i + PRODUCT_ROWS <= d->rows; i += PRODUCT_ROWS) product_block(d, i, k, PRODUCT_ROWS);
        if (i + 4 <= d->rows) product_block(d, i, k, 4), i += 4;
        for (; i + 2 <= d->rows; i += 2) product_block(d, i, k, 2);
        if (i < d->rows) product_block(d, i, k, 1);
    }
}

#endif
