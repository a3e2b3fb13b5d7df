/* Philox4x32-10 and the permutation keyed by it.
 * Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3";
 * cycle walking: Black, Rogaway 2002, "Ciphers with arbitrary finite domains". */
#include "base/philox.h"
#include <math.h>
#include <Random123/philox.h>

void keel_philox(uint32_t out[4], const keel_chance *c, uint64_t row, uint32_t block)
{
    const philox4x32_ctr_t counter = { { block, (uint32_t)row,
                                         (uint32_t)(row >> 32 & 0xFFFF) | (uint32_t)c->stream << 16,
                                         c->epoch } };
    const philox4x32_key_t key = { { (uint32_t)c->seed, (uint32_t)(c->seed >> 32) } };
    const philox4x32_ctr_t r = philox4x32(counter, key);
    for (int i = 0; i < 4; i++) out[i] = r.v[i];
}

void keel_normals(double z[4], const keel_chance *c, uint64_t row, uint32_t block)
{
    uint32_t word[4];
    keel_philox(word, c, row, block);
    for (int k = 0; k < 4; k += 2) {
        const double u = ((double)word[k] + 1) * 0x1p-32; /* (0, 1]: its logarithm is finite */
        const double angle = (double)word[k + 1] * (0x1p-31 * 3.14159265358979323846);
        const double radius = sqrt(-2 * log(u));
        z[k] = radius * cos(angle);
        z[k + 1] = radius * sin(angle);
    }
}

enum { ROUNDS = 6, LEAST_HALF_BITS = 4 };

/* A Feistel network of fewer than 2 * 4 bits cannot reach every order, so small n use 8 bits; the
 * longer walk is cheap for so few positions. */
void keel_permutation_init(keel_permutation *p, uint64_t n, const keel_chance *c)
{
    int bits = 0;
    while (bits < 64 && n > 1 && (n - 1) >> bits) bits++;
    p->n = n;
    p->half_bits = (bits + 1) / 2 < LEAST_HALF_BITS ? LEAST_HALF_BITS : (bits + 1) / 2;
    for (uint32_t b = 0; b < ROUNDS / 2; b++) {
        uint32_t w[4];
        keel_philox(w, c, 0, b);
        p->key[2 * b] = (uint64_t)w[1] << 32 | w[0];
        p->key[2 * b + 1] = (uint64_t)w[3] << 32 | w[2];
    }
}

/* Stafford's 64-bit finalizer (variant 13) of half and key; its highest bits mix best. */
static uint64_t round_bits(uint64_t half, uint64_t key, int half_bits)
{
    uint64_t x = half + key;
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    return x >> (64 - half_bits);
}

uint64_t keel_permutation_at(const keel_permutation *p, uint64_t position)
{
    const int h = p->half_bits;
    const uint64_t mask = (UINT64_C(1) << h) - 1;
    uint64_t x = position;
    if (p->n < 2) return position;
    do {
        uint64_t left = x >> h, right = x & mask;
        for (int i = 0; i < ROUNDS; i++) {
            const uint64_t next = left ^ round_bits(right, p->key[i], h);
            left = right;
            right = next;
        }
        x = left << h | right;
    } while (x >= p->n);
    return x;
}
