/* What packs numbers for the tiles of _tiles.h: vectors of 16 words, each a pair of bfloat16
 * numbers that are neighbours along the reduction. */
#ifndef KEEL_OPS_X86_TILE_WORDS_H
#define KEEL_OPS_X86_TILE_WORDS_H
#include "base/unroll.h"
#include "ops/x86/_tiles.h"
#include "ops/x86/_transpose.h"

enum { SIDE = 32, HALF = 16 }; /* of a block, of a tile; a step reduces by SIDE too */

typedef float vf __attribute__((vector_size(64), aligned(4), may_alias));
typedef words16 vi;
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

#endif
