/* What packs numbers for the tiles of _tiles.h: vectors of 16 words, each a pair of bfloat16
 * numbers that are neighbours along the reduction. */
#ifndef KEEL_OPS_X86_TILE_WORDS_H
#define KEEL_OPS_X86_TILE_WORDS_H
#include "base/unroll.h"
#include "ops/x86/_tiles.h"

enum { SIDE = 32, HALF = 16 }; /* of a block, of a tile; a step reduces by SIDE too */
enum { TILE_HALVES = TILE_ROWS * TILE_REDUCED };

typedef float vf __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t vu __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t vh __attribute__((vector_size(32), aligned(2), may_alias));

/* The first `count` of 16 floats, the others 0; p NULL: all 0. */
INLINE vf load_some(const float *p, int64_t count)
{
    vf x = { 0 };
    if (p && count >= HALF)
        x = *(const vf *)p;
    else if (p && count > 0)
        memcpy(&x, p, (size_t)count * sizeof *p);
    return x;
}

/* Two neighbours along the reduction share a word. */
INLINE vi pair(vi first, vi second)
{
    return (vi)((first >> 16) & 0xffff) | second;
}

/* Word [i][j] to [j][i], by swapping ever larger blocks. */
#define SWAP(d)                                                                                    \
    for (int i = 0; i < HALF; i++)                                                                 \
        if (!(i & d)) {                                                                            \
            const vi a = r[i], b = r[i + d];                                                       \
            r[i] = __builtin_shufflevector(a, b, LOW(0, d), LOW(1, d), LOW(2, d), LOW(3, d),       \
                                           LOW(4, d), LOW(5, d), LOW(6, d), LOW(7, d), LOW(8, d),  \
                                           LOW(9, d), LOW(10, d), LOW(11, d), LOW(12, d),          \
                                           LOW(13, d), LOW(14, d), LOW(15, d));                    \
            r[i + d] = __builtin_shufflevector(                                                    \
                a, b, HIGH(0, d), HIGH(1, d), HIGH(2, d), HIGH(3, d), HIGH(4, d), HIGH(5, d),      \
                HIGH(6, d), HIGH(7, d), HIGH(8, d), HIGH(9, d), HIGH(10, d), HIGH(11, d),          \
                HIGH(12, d), HIGH(13, d), HIGH(14, d), HIGH(15, d));                               \
        }
#define LOW(l, d)  ((l) & (d) ? HALF + (l) - (d) : (l))
#define HIGH(l, d) ((l) & (d) ? HALF + (l) : (l) + (d))
static inline void transpose(vi r[HALF])
{
    SWAP(1)
    SWAP(2)
    SWAP(4)
    SWAP(8)
}

#endif
