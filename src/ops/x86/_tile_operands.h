/* Operands of the products of _tile_blocks.h, and the product of rows that lie one after the other.
 *
 * Weights are read from copies in the order of the right tiles, which are made after they have
 * moved; values are read where they are, but for the end of a row that is no multiple of 32 numbers
 * long, and for a last block of rows, which are copied and filled up with zeros: what lies behind
 * them in memory may be NaN. For a weight gradient dy is packed once, and x turned for each block
 * of its channels.
 *
 * A row of a tile is multiplied by itself, and steps go from the first number to the last, of
 * places in the order of the step: one device and many give the same bits. */
#ifndef KEEL_OPS_X86_TILE_OPERANDS_H
#define KEEL_OPS_X86_TILE_OPERANDS_H
#include "ops/x86/_tile_blocks.h"

enum { PLACES = 256 }; /* rows that pass a strip of weights, which stays in the cache meanwhile */

/* ---- weights as right operand ---------------------------------------------------------------- */

/* [block of columns][step][2 tiles]; zeros behind the last row and column. */
typedef struct packer {
    int64_t c, k;
} packer;

/* A tile is 16 pairs of channels, ... */
static inline void refresh(const keel_derived *d, const void *weight)
{
    const packer *s = d->plan;
    const float *w = weight;
    uint16_t *to = d->data;
    for (int64_t j = 0; j < s->k; j += SIDE)
        for (int64_t i = 0; i < s->c; i += SIDE)
            for (int h = 0; h < 2; h++)
                for (int r = 0; r < HALF; r++, to += TILE_REDUCED) {
                    const int64_t first = i + 2 * r, column = j + h * HALF;
                    const float *from = w + first * s->k + column;
                    const vi even = rounded(load_some(first < s->c ? from : NULL, s->k - column));
                    const vi odd =
                        rounded(load_some(first + 1 < s->c ? from + s->k : NULL, s->k - column));
                    *(vi *)to = pair(even, odd);
                }
}

/* ... or of outputs: two neighbours of a row, which the copy turns. */
static inline void refresh_turned(const keel_derived *d, const void *weight)
{
    const packer *s = d->plan;
    const float *w = weight;
    uint16_t *to = d->data;
    for (int64_t j = 0; j < s->c; j += SIDE)
        for (int64_t i = 0; i < s->k; i += SIDE)
            for (int h = 0; h < 2; h++, to += TILE_HALVES) {
                vi r[HALF];
                for (int64_t c = 0; c < HALF; c++) {
                    const int64_t channel = j + h * HALF + c;
                    const float *from = channel < s->c ? w + channel * s->k + i : NULL;
                    const vi low = rounded(load_some(from, s->k - i));
                    const vi high = rounded(load_some(from ? from + HALF : NULL, s->k - i - HALF));
                    vh *const halves = (vh *)&r[c];
                    halves[0] = __builtin_convertvector(low >> 16, vh);
                    halves[1] = __builtin_convertvector(high >> 16, vh);
                }
                transpose(r);
                memcpy(to, r, sizeof r);
            }
}

/* ---- rows as left operand, and their product ------------------------------------------------- */

/* Scratch: tails of PLACES rows, and a block of whole rows. */
static inline int64_t product_scratch(int64_t inner)
{
    return (PLACES + SIDE * blocks(inner)) * SIDE * (int64_t)sizeof(keel_bf16);
}

static inline void fill_up(keel_bf16 *to, int64_t row, const keel_bf16 *from, int64_t apart,
                           int64_t n, int64_t count)
{
    for (int64_t i = 0; i < n; i++, to += row) {
        memcpy(to, from + i * apart, (size_t)count * sizeof *to);
        memset(to + count, 0, (size_t)(row - count) * sizeof *to);
    }
}

/* Up to 32 rows x [rows, inner]. Tiles have 16 rows: with others, all are copied. */
static inline left left_of(const keel_bf16 *x, int64_t rows, int64_t inner, keel_bf16 *tail,
                           keel_bf16 *whole)
{
    const int64_t full = inner / SIDE * SIDE, row = blocks(inner) * SIDE;
    const int64_t fill = keel_round_up(rows, HALF) - rows;
    if (fill > 0) {
        fill_up(whole, row, x, inner, rows, inner);
        memset(whole + rows * row, 0, (size_t)(fill * row) * sizeof *whole);
        return (left){ .at = whole, .apart = row, .rows = rows };
    }
    if (full < inner) fill_up(tail, SIDE, x + full, inner, rows, inner - full);
    return (left){ .at = x, .tail = full < inner ? tail : NULL, .apart = inner, .rows = rows };
}

/* y [rows, columns] = x [rows, inner] times the copy, + start. */
static inline void product(const keel_bf16 *x, int64_t rows, int64_t inner,
                           const keel_derived *copy, keel_bf16 *y, int64_t columns,
                           const float *start, bool adds, void *scratch)
{
    const int64_t steps = blocks(inner);
    keel_bf16 *const tails = scratch, *const whole = tails + PLACES * SIDE;
    line l;
    line_begin(&l);
    for (int64_t q = 0; q < rows; q += PLACES) {
        left a[PLACES / SIDE];
        const int64_t places = at_most(rows - q, PLACES), n = blocks(places);
        for (int64_t i = 0; i < n; i++)
            a[i] = left_of(x + (q + i * SIDE) * inner, at_most(places - i * SIDE, SIDE), inner,
                           tails + i * SIDE * SIDE, whole);
        const uint16_t *b = copy->data;
        for (int64_t k = 0; k < columns; k += SIDE, b += steps * STEP_HALVES)
            for (int64_t i = 0; i < n; i++) {
                const place where = { .rows = a[i].rows,
                                      .columns = at_most(columns - k, SIDE),
                                      .apart = columns,
                                      .values = y + (q + i * SIDE) * columns + k,
                                      .start = start ? start + k : NULL,
                                      .adds = adds };
                line_block(&l, &a[i], b, steps, &where, VALUES);
            }
    }
    line_end(&l, VALUES);
}

/* ---- weight gradients ------------------------------------------------------------------------ */

/* 16 numbers of place q and of the next as 16 words. */
INLINE vi joined(const keel_bf16 *const *from, int64_t q, int64_t n, int64_t at, int64_t count)
{
    const vi first = load_halves(q < n ? from[q] + at : NULL, count);
    return first | load_halves(q + 1 < n ? from[q + 1] + at : NULL, count) << 16;
}

/* dy as right operand: pairs of places. */
static inline void pack_dy(uint16_t *to, const keel_bf16 *const *dy, int64_t n, int64_t n_k)
{
    for (int64_t j = 0; j < n_k; j += SIDE)
        for (int64_t q = 0; q < n; q += SIDE)
            for (int64_t k = j; k < j + SIDE; k += HALF)
                for (int64_t r = 0; r < SIDE; r += 2, to += TILE_REDUCED)
                    *(vi *)to = joined(dy, q + r, n, k, n_k - k);
}

/* Channels [first, first + 32) of x as left operand [32][places, a multiple of 32]. */
static inline void turn_x(keel_bf16 *to, const keel_bf16 *const *x, int64_t n, int64_t n_c,
                          int64_t first)
{
    const int64_t row = blocks(n) * SIDE;
    for (int h = 0; h < 2; h++)
        for (int64_t q = 0; q < n; q += SIDE) {
            vi r[HALF];
            const int64_t channel = first + h * HALF;
            for (int64_t m = 0; m < HALF; m++)
                r[m] = joined(x, q + 2 * m, n, channel, n_c - channel);
            transpose(r);
            for (int64_t c = 0; c < HALF; c++) *(vi *)(to + (h * HALF + c) * row + q) = r[c];
        }
}

/* The gradient of a bias, outputs [first, first + count): dy [places, n_k] summed over places, in
 * stretches, so that a long sum does not lose the small to the large. */
static inline void sum_places(const keel_span *span, int n_span, int64_t n_k, int64_t first,
                              int64_t count, float *to)
{
    enum { STRETCH = 128 };
    for (int64_t k = 0; k < count; k += HALF) {
        vf all = { 0 }, sum = { 0 };
        int64_t n = 0;
        for (int s = 0; s < n_span; s++) {
            const keel_bf16 *dy = (const keel_bf16 *)span[s].out_grad + first + k;
            for (int64_t i = 0; i < span[s].rows; i++, dy += n_k) {
                sum += (vf)(load_halves(dy, count - k) << 16);
                if (++n % STRETCH) continue;
                all += sum;
                sum = (vf){ 0 };
            }
        }
        put(to + k, all + sum, count - k);
    }
}

#endif
