/* 8 or 16 blocks of Philox4x32-10 at a time, for dropout: bit for bit the mask of ops/dropout.c.
 *
 * A lane is a block of four draws; its four words become the four bytes of one 32-bit lane, so that
 * a vector of lanes is the mask in memory order. uniform >= rate on 24 bits is word >> 8 >=
 * ceil(rate 2^24). Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1,
 * 2, 3". */
#ifndef KEEL_OPS_X86_PHILOX_H
#define KEEL_OPS_X86_PHILOX_H
#include "ops/x86/_vector.h"
#include <math.h>

/* The counters of LANES blocks from `block` on, in the layout of base/philox.c. */
static inline void philox(vi w[4], const keel_chance *c, uint64_t row, uint32_t block)
{
    static const int32_t lane[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const vi m0 = vi_set((int32_t)0xD2511F53), m1 = vi_set((int32_t)0xCD9E8D57);
    uint32_t k0 = (uint32_t)c->seed, k1 = (uint32_t)(c->seed >> 32);
    w[0] = vi_add(vi_set((int32_t)block), vi_load(lane));
    w[1] = vi_set((int32_t)(uint32_t)row);
    w[2] = vi_set((int32_t)((uint32_t)(row >> 32 & 0xFFFF) | (uint32_t)c->stream << 16));
    w[3] = vi_set((int32_t)c->epoch);
    for (int i = 0; i < 10; i++) {
        const vi high0 = vi_multiply_high(w[0], m0), low0 = vi_multiply_low(w[0], m0);
        const vi high1 = vi_multiply_high(w[2], m1), low1 = vi_multiply_low(w[2], m1);
        w[0] = vi_xor(vi_xor(high1, w[1]), vi_set((int32_t)k0));
        w[1] = low1;
        w[2] = vi_xor(vi_xor(high0, w[3]), vi_set((int32_t)k1));
        w[3] = low0;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
}

/* 1 or 0 for each of the `count` draws of a row from block `block` on: whether it is kept. */
static inline void philox_mask(uint8_t *mask, const keel_chance *c, uint64_t row, uint32_t block,
                               int64_t count, double rate)
{
    enum { DRAWS = 4 * LANES };
    const vi below = vi_set((int32_t)ceil(rate * 16777216) - 1); /* kept: word >> 8 above it */
    for (int64_t i = 0; i < count; i += DRAWS) {
        uint8_t last[DRAWS], *to = mask + i;
        vi w[4], kept = vi_set(0);
        philox(w, c, row, block + (uint32_t)(i / 4));
        for (int j = 0; j < 4; j++) {
            const vm above = vi_greater(vi_right(w[j], 8), below);
            kept = vi_or(kept, vi_choose(above, vi_set(1 << 8 * j), vi_set(0)));
        }
        if (i + DRAWS <= count) {
            vi_store(to, kept);
        } else {
            vi_store(last, kept);
            memcpy(to, last, (size_t)(count - i));
        }
    }
}

#endif
