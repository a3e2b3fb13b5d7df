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
#include "base/memory.h"
#include "ops/x86/_tile_blocks.h"

enum { PLACES = 256 }; /* rows that pass a strip of weights, which stays in the cache meanwhile */

/* ---- weights as right operand ---------------------------------------------------------------- */

enum { TAPS_MOST = 64, CLASSES_MOST = 16 };

/* Weights [taps][c][k] in the order of the right tiles: [class][block of columns][block of
 * rows][tap][2 tiles], zeros behind the last row and column. A class has some of the taps, which
 * are used together. */
typedef struct packer {
    int64_t c, k;
    bool turned; /* columns are channels: the copy for the gradient of the left operand */
    int n_class;
    int n_tap[CLASSES_MOST]; /* of each class */
    int tap[TAPS_MOST];      /* one class after the other */
} packer;

/* A tile is 16 pairs of channels, up to `rows` x `columns` of them, ... */
static inline void pack_weights(uint16_t *to, const float *w, int64_t row, int64_t rows,
                                int64_t columns)
{
    for (int r = 0; r < HALF; r++, to += TILE_REDUCED) {
        const float *const from = w + 2 * r * row;
        const vi even = rounded(load_some(2 * r < rows ? from : NULL, columns));
        const vi odd = rounded(load_some(2 * r + 1 < rows ? from + row : NULL, columns));
        *(vi *)to = pair(even, odd);
    }
}

/* ... or of outputs: two neighbours of a row, which the copy turns. */
static inline void pack_turned_weights(uint16_t *to, const float *w, int64_t column, int64_t rows,
                                       int64_t columns)
{
    vi r[HALF];
    for (int64_t c = 0; c < HALF; c++) {
        const float *const from = c < columns ? w + c * column : NULL;
        const vi low = rounded(load_some(from, rows));
        const vi high = rounded(load_some(from ? from + HALF : NULL, rows - HALF));
        vh *const halves = (vh *)&r[c];
        halves[0] = __builtin_convertvector(low >> 16, vh);
        halves[1] = __builtin_convertvector(high >> 16, vh);
    }
    transpose(r);
    memcpy(to, r, sizeof r);
}

/* The two tiles of 32 rows and 32 columns of the operand, from row i and column j on, for a tap. */
static inline void pack_step(const packer *s, const float *w, int64_t i, int64_t j, uint16_t *to)
{
    const int64_t rows = s->turned ? s->k : s->c, columns = s->turned ? s->c : s->k;
    for (int64_t h = j; h < j + SIDE; h += HALF, to += TILE_HALVES) {
        if (s->turned)
            pack_turned_weights(to, w + h * s->k + i, s->k, rows - i, columns - h);
        else
            pack_weights(to, w + i * s->k + h, s->k, rows - i, columns - h);
    }
}

static inline void refresh(const keel_derived *d, const void *weight)
{
    const packer *s = d->plan;
    const int64_t rows = s->turned ? s->k : s->c, columns = s->turned ? s->c : s->k;
    uint16_t *to = d->data;
    const int *tap = s->tap;
    for (int g = 0; g < s->n_class; tap += s->n_tap[g++])
        for (int64_t j = 0; j < columns; j += SIDE)
            for (int64_t i = 0; i < rows; i += SIDE)
                for (int t = 0; t < s->n_tap[g]; t++, to += STEP_HALVES)
                    pack_step(s, (const float *)weight + tap[t] * s->c * s->k, i, j, to);
}

/* Of a weight with one tap. Its rows are rows of the operand, or, turned, its columns. */
static inline void refresh_rows(const keel_derived *d, const void *weight, int64_t first,
                                int64_t count)
{
    const packer *s = d->plan;
    const int64_t rows = s->turned ? s->k : s->c, end = first + count;
    for (int64_t j = s->turned ? first : 0; j < (s->turned ? end : s->k); j += SIDE)
        for (int64_t i = s->turned ? 0 : first; i < (s->turned ? s->k : end); i += SIDE)
            pack_step(s, weight, i, j,
                      (uint16_t *)d->data +
                          (j / SIDE * blocks(rows) + i / SIDE) * (int64_t)STEP_HALVES);
}

/* Copies with the same order of taps are shared. */
static inline uint64_t key_of(const packer *s, int taps)
{
    uint64_t key = 0x54494c4553000000 + (uint64_t)s->turned;
    for (int g = 0; g < s->n_class; g++) key = (key ^ (uint64_t)s->n_tap[g]) * 0x100000001b3;
    for (int t = 0; t < taps; t++) key = (key ^ (uint64_t)s->tap[t]) * 0x100000001b3;
    return key;
}

/* Asks for the copy of the node's weight 0. */
static inline keel_status derive_weights(keel_prepare *p, const packer *want,
                                         const keel_derived **got)
{
    int64_t halves, bytes;
    int taps = 0;
    for (int g = 0; g < want->n_class; g++) taps += want->n_tap[g];
    if (!keel_mul_i64(blocks(want->c), blocks(want->k), &halves) ||
        !keel_mul_i64(halves, taps * STEP_HALVES * (int64_t)sizeof(uint16_t), &bytes))
        return KEEL_EUNSUP;
    packer *const s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    *s = *want;
    keel_derived copy = { .bytes = (size_t)bytes,
                          .weight = 0,
                          .key = key_of(want, taps),
                          .refresh = refresh,
                          .refresh_rows = taps == 1 ? refresh_rows : NULL,
                          .rows = SIDE,
                          .release = keel_free,
                          .plan = s };
    return p->derive(p->context, &copy, got);
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

static inline left left_rows(const keel_bf16 *at, int64_t apart, int64_t rows)
{
    return (
        left){ .at = at, .apart = apart, .rows = rows, .next = SIDE, .n_tap = 1, .tap = one_tap };
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
        return left_rows(whole, row, rows);
    }
    left a = left_rows(x, inner, rows);
    if (full == inner) return a;
    fill_up(tail, SIDE, x + full, inner, rows, inner - full);
    a.tail = tail;
    return a;
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

/* Places q and q + 1 of n, NULL for what is not there. */
typedef struct neighbours {
    const keel_bf16 *at[2];
} neighbours;

INLINE neighbours neighbours_at(const keel_bf16 *const *from, int64_t q, int64_t n)
{
    return (neighbours){ { q < n ? from[q] : NULL, q + 1 < n ? from[q + 1] : NULL } };
}

/* 16 numbers of each, `count` of them there, as 16 words. */
INLINE vi joined(neighbours p, int64_t at, int64_t count)
{
    const vi low = load_halves(p.at[0] ? p.at[0] + at : NULL, count);
    return low | load_halves(p.at[1] ? p.at[1] + at : NULL, count) << 16;
}

/* Columns [first, last) of dy as right operand, pairs of places; in the order of memory. */
static inline void pack_dy(uint16_t *to, const keel_bf16 *const *dy, int64_t n, int64_t first,
                           int64_t last)
{
    const int64_t column = blocks(n) * STEP_HALVES, end = first + blocks(last - first) * SIDE;
    for (int64_t q = 0; q < keel_round_up(n, SIDE); q += 2) {
        const neighbours p = neighbours_at(dy, q, n);
        uint16_t *at = to + q / SIDE * STEP_HALVES + q % SIDE * HALF;
        int64_t k = first;
        if (p.at[0] && p.at[1])
            for (; k + SIDE <= last; k += SIDE, at += column) {
                *(vi *)at = joined(p, k, SIDE);
                *(vi *)(at + TILE_HALVES) = joined(p, k + HALF, HALF);
            }
        for (; k < end; k += SIDE, at += column) {
            *(vi *)at = joined(p, k, last - k);
            *(vi *)(at + TILE_HALVES) = joined(p, k + HALF, last - k - HALF);
        }
    }
}

/* Of left operands [channel][row], 16 channels from `first` on at 32 places from q on. */
static inline void turn_some(keel_bf16 *to, int64_t row, const keel_bf16 *const *x, int64_t q,
                             int64_t n, int64_t first, int64_t n_c)
{
    vi r[HALF];
    for (int64_t m = 0; m < HALF; m++)
        r[m] = joined(neighbours_at(x, q + 2 * m, n), first, n_c - first);
    transpose(r);
    for (int64_t c = 0; c < HALF; c++) *(vi *)(to + c * row + q) = r[c];
}

/* Channels [first, first + 32) of x as left operand [32][row], of n places and then zeros; `row` is
 * a multiple of 32. */
static inline void turn_x(keel_bf16 *to, int64_t row, const keel_bf16 *const *x, int64_t n,
                          int64_t n_c, int64_t first)
{
    for (int h = 0; h < SIDE; h += HALF)
        for (int64_t q = 0; q < row; q += SIDE)
            turn_some(to + h * row, row, x, q, n, first + h, n_c);
}

/* The gradient of a bias, outputs [first, first + count): dy [places, n_k] summed over places, in
 * stretches, so that a long sum does not lose the small to the large. */
static inline void sum_places(const keel_span *span, int n_span, int64_t n_k, int64_t first,
                              int64_t count, float *to, bool adds)
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
        all += sum;
        if (adds) all += load_some(to + k, count - k);
        put(to + k, all, count - k);
    }
}

#endif
