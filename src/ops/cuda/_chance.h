/* Random numbers: Philox4x32-10, bit for bit as base/philox.c. Source: Salmon, Moraes, Dror, Shaw
 * 2011, "Parallel random numbers: as easy as 1, 2, 3". */
#ifndef KEEL_OPS_CUDA_CHANCE_H
#define KEEL_OPS_CUDA_CHANCE_H
#include "ops/cuda/_kernel.h"
extern "C" {
#include "ops/draws.h"
}
#include <math.h>

struct cuda_chance {
    const keel_step_facts *step; /* on the device, for whichever step the kernel runs in */
    uint64_t row;                /* of the step: the call's first */
    unsigned stream;
};

static inline cuda_chance cuda_chance_of(const keel_call *c)
{
    return { c->facts, (uint64_t)c->row, c->node->stream };
}

/* A uniform draw is at least `rate` where the upper 24 bits of its word are at least this. */
static inline unsigned cuda_least(double rate)
{
    return (unsigned)ceil(rate * 16777216.0);
}

/* The four words of a block of row `row` of the call. */
static __device__ __forceinline__ void cuda_philox(unsigned w[4], const cuda_chance &c, int64_t row,
                                                   unsigned block)
{
    const uint64_t at = c.step->first_row + c.row + (uint64_t)row, seed = c.step->seed;
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
    w[0] = block;
    w[1] = (unsigned)at;
    w[2] = ((unsigned)(at >> 32) & 0xffffu) | c.stream << 16;
    w[3] = c.step->epoch;
    for (int i = 0; i < 10; i++) {
        const unsigned high0 = __umulhi(0xD2511F53u, w[0]), low0 = 0xD2511F53u * w[0];
        const unsigned high1 = __umulhi(0xCD9E8D57u, w[2]), low1 = 0xCD9E8D57u * w[2];
        w[0] = high1 ^ w[1] ^ k0;
        w[1] = low1;
        w[2] = high0 ^ w[3] ^ k1;
        w[3] = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Word e of the four: an index that is not known would put words into memory. */
static __device__ __forceinline__ unsigned cuda_chosen(const unsigned w[4], unsigned e)
{
    unsigned own = w[0];
    for (unsigned i = 1; i < 4; i++) own = e == i ? w[i] : own;
    return own;
}

/* As keel_draw. */
static inline __device__ double cuda_draw(const cuda_chance &c, int64_t row, unsigned number,
                                          const keel_range &range)
{
    unsigned word[4];
    cuda_philox(word, c, row, number / 4);
    const double part = (double)(cuda_chosen(word, number % 4) >> 8) * (1.0 / 16777216.0);
    return range.low + times(range.high - range.low, part);
}

/* As keel_normals. */
static __device__ __forceinline__ void cuda_normals(double z[4], const unsigned word[4])
{
    for (int k = 0; k < 4; k += 2) {
        const double u = ((double)word[k] + 1) * 0x1p-32;
        const double angle = (double)word[k + 1] * (0x1p-31 * 3.14159265358979323846);
        const double radius = sqrt(-2 * log(u));
        z[k] = radius * cos(angle);
        z[k + 1] = radius * sin(angle);
    }
}

/* Number e of the four. */
static __device__ __forceinline__ double cuda_normal(const unsigned word[4], unsigned e)
{
    const unsigned first = e < 2 ? word[0] : word[2], second = e < 2 ? word[1] : word[3];
    const double angle = (double)second * (0x1p-31 * 3.14159265358979323846);
    const double radius = sqrt(-2 * log(((double)first + 1) * 0x1p-32));
    return radius * (e % 2 ? sin(angle) : cos(angle));
}

#endif
