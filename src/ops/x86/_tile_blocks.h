/* Products of bfloat16 values by tiles, in blocks: what kernels of the layers whose values are held
 * in bfloat16 share.
 *
 * A block is 2 x 2 tiles, 32 x 32 sums in float32, to which a step adds the products of 32 numbers
 * by four loads and four products of tiles.
 *
 *              right   6   7        Left tiles are 16 rows of 32 numbers as they lie in memory;
 * right left  4          0   1        tiles are pairs of rows, 16 x 16 words. A block that has no
 * more 5          2   3        than 16 rows or columns leaves out tiles.
 *
 * What takes time is not the products. Sums must be stored, rounded and written, and the tiles
 * multiply by themselves meanwhile: so the block before is finished a few rows at each step of this
 * one. */
#ifndef KEEL_OPS_X86_TILE_BLOCKS_H
#define KEEL_OPS_X86_TILE_BLOCKS_H
#include "base/round.h"
#include "ops/op.h"
#include "ops/x86/_tile_words.h"
#include "tensor/bfloat16.h"

enum { STEP_HALVES = 2 * TILE_HALVES }; /* of the right operand */

static inline int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

static inline int64_t blocks(int64_t n)
{
    return keel_div_up(n, SIDE);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The first `count` of 16 numbers as words, the others 0; p NULL: all 0. */
INLINE vi load_halves(const keel_bf16 *p, int64_t count)
{
    vh x = { 0 };
    if (p && count >= HALF)
        x = *(const vh *)p;
    else if (p && count > 0)
        memcpy(&x, p, (size_t)count * sizeof *p);
    return __builtin_convertvector(x, vi);
}

/* Rounded to nearest even in the upper halves; below them 0. NaN stays NaN. */
INLINE vi rounded(vf x)
{
    const vu bits = (vu)x, up = bits + 0x7fff + (bits >> 16 & 1);
    const vi is_number = (vi)(bits & 0x7fffffff) <= 0x7f800000;
    return (vi)(((up & (vu)is_number) | ((bits | 0x400000) & ~(vu)is_number)) & 0xffff0000);
}

/* Keeps a product from becoming part of a multiply-add: a move has the bits of optimizers/sgd.c. */
INLINE vf unfused(vf x)
{
    __asm__("" : "+v"(x));
    return x;
}

INLINE void put(float *to, vf x, int64_t count)
{
    if (count >= HALF)
        *(vf *)to = x;
    else if (count > 0)
        memcpy(to, &x, (size_t)count * sizeof *to);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* What becomes of sums: rounded values, float32, or weights that move. */
typedef enum ending { VALUES, GRADIENT, MOVE } ending;

/* Where the sums of a block go. */
typedef struct place {
    int64_t rows, columns; /* what is wanted of the block */
    int64_t apart;         /* elements between rows of what is below */
    keel_bf16 *values;
    keel_bf16 *const *list; /* not NULL: instead, row r begins `first` behind list[r]; where that
                               is NULL the row is not wanted */
    int64_t first;
    const float *start; /* [columns] added to each row; NULL: 0 */
    float *gradient;
    bool adds; /* VALUES, GRADIENT: to what is there */
    keel_tile_move move;
} place;

/* A block whose products are done. */
typedef struct finished {
    float sum[SIDE][SIDE] __attribute__((aligned(64)));
    int64_t row; /* the next to be written */
    place to;
} finished;

INLINE void write_values(const float *sums, keel_bf16 *y, const place *to)
{
    for (int64_t k = 0; k < to->columns; k += HALF) {
        const int64_t count = to->columns - k;
        vf sum = *(const vf *)(sums + k);
        if (to->start) sum += load_some(to->start + k, count);
        if (to->adds) sum += (vf)(load_halves(y + k, count) << 16);
        const vh halves = __builtin_convertvector(rounded(sum) >> 16, vh);
        if (count >= HALF)
            *(vh *)(y + k) = halves;
        else
            memcpy(y + k, &halves, (size_t)count * sizeof *y);
    }
}

INLINE void write_row(const float *sums, int64_t row, const place *to, const ending end)
{
    if (end == VALUES) {
        if (!to->list)
            write_values(sums, to->values + row * to->apart, to);
        else if (to->list[row])
            write_values(sums, to->list[row] + to->first, to);
        return;
    }
    for (int64_t k = 0; k < to->columns; k += HALF) {
        const int64_t count = to->columns - k, at = row * to->apart + k;
        vf sum = *(const vf *)(sums + k);
        if (end == GRADIENT) {
            float *const dw = to->gradient + at;
            if (to->start) sum += load_some(to->start + k, count);
            if (to->adds) sum += load_some(dw, count);
            put(dw, sum, count);
        } else {
            float *const w = to->move.w + at, *const m = to->move.m + at;
            const vf was = load_some(w, count);
            const vf kept = unfused(load_some(m, count) * to->move.keep);
            const vf by = kept - unfused(unfused(sum * to->move.scale) * to->move.rate);
            put(m, by, count);
            put(w, was + by, count);
        }
    }
}

INLINE void write_some(finished *f, int64_t rows, const ending end)
{
    for (const int64_t last = at_most(f->to.rows, f->row + rows); f->row < last; f->row++)
        write_row(f->sum[f->row], f->row, &f->to, end);
}

/* 32 rows as left operand. Their numbers are those of some taps: a step takes 32 of them at a tap's
 * distance from `at`, and after all taps comes what lies `next` further on. The last step reads
 * `tail` [32][32], if that is not NULL. Distances are in elements. */
typedef struct left {
    const keel_bf16 *at, *tail;
    int64_t apart, rows; /* from a row to the next */
    int64_t next;
    int n_tap;
    const int64_t *tap;
} left;

static const int64_t one_tap[] = { 0 }; /* of rows that lie as they are multiplied */

/* Other work for vectors while tiles multiply: at each step some of it. */
typedef struct beside {
    void (*some)(struct beside *);
} beside;

/* The products of a block, whose sums go to `to`; `before` is finished meanwhile. low, wide: there
 * is a second row, a second column of tiles. */
INLINE void block(const left *a, const uint16_t *b, int64_t steps, finished *to, finished *before,
                  beside *other, const ending end, const bool low, const bool wide)
{
    const int64_t share = keel_div_up(before->to.rows - before->row, steps);
    const keel_bf16 *at = a->at;
    int tap = 0;
    tile_zero(0);
    if (wide) tile_zero(1);
    if (low) tile_zero(2);
    if (low && wide) tile_zero(3);
    for (int64_t s = 0; s < steps; s++, b += STEP_HALVES) {
        const bool last = a->tail && s == steps - 1;
        const keel_bf16 *x = last ? a->tail : at + a->tap[tap];
        const int64_t row = last ? SIDE : a->apart, stride = row * (int64_t)sizeof *x;
        tile_load(4, x, stride);
        if (low) tile_load(5, x + HALF * row, stride);
        tile_load(6, b, TILE_BYTES);
        if (wide) tile_load(7, b + TILE_HALVES, TILE_BYTES);
        tile_multiply(0, 4, 6);
        if (wide) tile_multiply(1, 4, 7);
        if (low) tile_multiply(2, 5, 6);
        if (low && wide) tile_multiply(3, 5, 7);
        write_some(before, share, end);
        if (other) other->some(other);
        if (++tap == a->n_tap) {
            tap = 0;
            at += a->next;
        }
    }
    const int64_t stride = sizeof to->sum[0];
    tile_store(0, to->sum[0], stride);
    if (wide) tile_store(1, to->sum[0] + HALF, stride);
    if (low) tile_store(2, to->sum[HALF], stride);
    if (low && wide) tile_store(3, to->sum[HALF] + HALF, stride);
}

/* Two blocks in turn: one is multiplied, the other finished. */
typedef struct line {
    finished f[2];
    int next;
    beside *other; /* NULL: no other work */
} line;

INLINE void line_begin(line *l)
{
    l->next = 0;
    l->other = NULL;
    l->f[1].row = l->f[1].to.rows = 0;
    tiles_begin();
}

INLINE void line_block(line *l, const left *a, const uint16_t *b, int64_t steps, const place *where,
                       const ending end)
{
    finished *const to = &l->f[l->next], *const before = &l->f[!l->next];
    const bool low = where->rows > HALF, wide = where->columns > HALF;
    if (low && wide)
        block(a, b, steps, to, before, l->other, end, true, true);
    else if (low)
        block(a, b, steps, to, before, l->other, end, true, false);
    else if (wide)
        block(a, b, steps, to, before, l->other, end, false, true);
    else
        block(a, b, steps, to, before, l->other, end, false, false);
    to->row = 0;
    to->to = *where;
    l->next = !l->next;
}

INLINE void line_end(line *l, const ending end)
{
    write_some(&l->f[!l->next], SIDE, end);
    tiles_end();
}

#endif
