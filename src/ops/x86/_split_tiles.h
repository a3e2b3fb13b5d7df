/* Products of pieces on tiles: a block of 32 x 32 sums, reduced by 32 a step. What pieces are, and
 * why small products come first, is told in _split_amx.c.
 *
 * The sums are tiles 0 to 3, the left operand's tiles 4 and 5, the right one's 6 and 7. */
#ifndef KEEL_OPS_X86_SPLIT_TILES_H
#define KEEL_OPS_X86_SPLIT_TILES_H
#include "base/unroll.h"
#include "ops/x86/_tiles.h"
#include "ops/x86/_transpose.h"

enum { SPLIT_SIDE = 2 * TILE_ROWS }; /* of a block */

typedef float floats16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t unsigned16 __attribute__((vector_size(64), aligned(4), may_alias));

/* Pieces as float32 whose lower half is 0: each what those before left over, to nearest. */
INLINE void split_pieces(floats16 x, words16 *piece, const int pieces)
{
    EACH(p, pieces) {
        piece[p] = (words16)(((unsigned16)x + 0x8000) & 0xffff0000);
        x -= (floats16)piece[p];
    }
}

/* Left tiles of a step: [piece], `second` rows lie 16 tile rows after the first. */
typedef struct split_left {
    const uint16_t *at;    /* of piece 0 */
    int64_t piece, second; /* in elements */
    int64_t stride;        /* bytes */
} split_left;

#define LEFT(p)                                                                                    \
    tile_load(4, a.at + (p)*a.piece, a.stride);                                                    \
    tile_load(5, a.at + (p)*a.piece + a.second, a.stride)
#define RIGHT(p)                                                                                   \
    tile_load(6, b + (p)*2 * TILE_HALVES, TILE_BYTES);                                             \
    tile_load(7, b + ((p)*2 + 1) * TILE_HALVES, TILE_BYTES)
#define MULTIPLY                                                                                   \
    tile_multiply(0, 4, 6);                                                                        \
    tile_multiply(1, 4, 7);                                                                        \
    tile_multiply(2, 5, 6);                                                                        \
    tile_multiply(3, 5, 7)

/* One step: right tiles lie [piece][2] one after the other. Of three pieces the five small products
 * (part 0) are summed for all steps of a run before the large one (part 1): while sums are small,
 * rounding them costs little. */
INLINE void split_step(split_left a, const uint16_t *b, const int pieces, const int part)
{
    if (pieces == 3 && part == 0) {
        LEFT(2);
        RIGHT(0);
        MULTIPLY;
        LEFT(1);
        MULTIPLY;
        RIGHT(1);
        MULTIPLY;
        LEFT(0);
        MULTIPLY;
        RIGHT(2);
        MULTIPLY;
    } else if (pieces == 3) {
        LEFT(0);
        RIGHT(0);
        MULTIPLY;
    } else {
        LEFT(1);
        RIGHT(0);
        MULTIPLY;
        LEFT(0);
        MULTIPLY;
        RIGHT(1);
        MULTIPLY;
    }
}

INLINE void split_zero(void)
{
    tile_zero(0);
    tile_zero(1);
    tile_zero(2);
    tile_zero(3);
}

INLINE void split_store(float sum[SPLIT_SIDE][SPLIT_SIDE])
{
    const int64_t stride = SPLIT_SIDE * (int64_t)sizeof(float);
    tile_store(0, sum[0], stride);
    tile_store(1, sum[0] + TILE_ROWS, stride);
    tile_store(2, sum[TILE_ROWS], stride);
    tile_store(3, sum[TILE_ROWS] + TILE_ROWS, stride);
}

/* adds: to what a run before has left in `sum` */
INLINE void split_end_run(float sum[SPLIT_SIDE][SPLIT_SIDE], bool adds)
{
    float more[SPLIT_SIDE][SPLIT_SIDE] __attribute__((aligned(64)));
    split_store(adds ? more : sum);
    for (int r = 0; adds && r < SPLIT_SIDE; r++)
        for (int c = 0; c < SPLIT_SIDE; c++) sum[r][c] += more[r][c];
}

#undef LEFT
#undef RIGHT
#undef MULTIPLY
#endif
