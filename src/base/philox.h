/* Random numbers are a function of (seed, epoch, stream, row, draw), by Philox4x32-10 (Random123),
 * so they do not depend on lanes, threads or the order of arrival.
 *
 * key = seed; counter = draw / 4 (32 bits), row (48), stream (16), epoch (32); word draw % 4 of the
 * block is the number of `draw`. A row is the position in the epoch's order after shuffling, a
 * draw the element in logical row-major order. */
#ifndef KEEL_BASE_PHILOX_H
#define KEEL_BASE_PHILOX_H
#include <stdint.h>

enum { /* streams; all other streams are the index of a layer in the model */
       KEEL_STREAM_SHUFFLE = 0xFFFF,
       KEEL_STREAM_WEIGHTS = 0xFFFD, /* row = index of the weight, draw = element */
       KEEL_STREAM_STAGES = 0xF000,  /* and the number of a stage of the data, at most 1024 */
};

typedef struct keel_chance { /* the key without row and draw */
    uint64_t seed;
    uint32_t epoch;
    uint16_t stream;
} keel_chance;

/* The four words of block `block` (draws 4 * block ... 4 * block + 3) of a row. */
void keel_philox(uint32_t out[4], const keel_chance *c, uint64_t row, uint32_t block);

static inline double keel_uniform(uint32_t word) /* [0, 1), 24 bits, equal in float and double */
{
    return (double)(word >> 8) * (1.0 / 16777216.0);
}

/* The same four draws as standard normals (Box and Muller 1958): two words make two. */
void keel_normals(double z[4], const keel_chance *c, uint64_t row, uint32_t block);

/* A keyed permutation of [0, n), position -> index, in O(1) memory: a six-round Feistel network on
 * the next even power of two, at least 256, repeated until the result is below n (cycle walking).
 */
typedef struct keel_permutation {
    uint64_t n;
    uint64_t key[6];
    int half_bits;
} keel_permutation;

/* Uses blocks 0 to 2 of row 0 of `c` as key; draw nothing else there. */
void keel_permutation_init(keel_permutation *p, uint64_t n, const keel_chance *c);
uint64_t keel_permutation_at(const keel_permutation *p, uint64_t position); /* position < n */

#endif
