/* What our float32 kernels of Winograd share: the shape of their products and buffers. */
#ifndef KEEL_OPS_X86_WINOGRAD_VECTOR_H
#define KEEL_OPS_X86_WINOGRAD_VECTOR_H
#include "ops/x86/_vector.h"
#include "ops/x86/_winograd.h"

/* A panel is two vectors of columns; ROWS x 2 or CHANNELS x 2 sums stay in registers. TO_ROWS: one
 * X for each number of rows. */
enum { PANEL = 2 * LANES };
#ifdef __AVX512F__
enum { ROWS = 14, CHANNELS = 8 };
#define TO_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
enum { ROWS = 5, CHANNELS = 4 };
#define TO_ROWS(X) X(1) X(2) X(3) X(4) X(5)
#endif

/* A weight gradient goes by blocks of WEIGHTS_BLOCK channels and as many filters, whose sums, 64
 * KiB a point, stay in the cache over all tiles, of which at most WEIGHTS_TILES, in equal parts,
 * are taken at a time. Measured: blocks of 64 are up to 13 % slower, of 256 even; 56 or 224 tiles
 * up to 5 % slower. */
enum { WEIGHTS_BLOCK = 128, WEIGHTS_TILES = 128 };

/* A buffer of transformed values: [points][blocks][tiles][LANES]. Points lie an odd number of lines
 * apart, else they would all want the same few places of the cache. */
typedef struct buffer {
    float *data;
    int64_t block, point; /* floats from one to the next */
} buffer;

static inline buffer buffer_of(float *data, int64_t channels, int64_t tiles)
{
    const int64_t each = tiles * LANES, blocks = ceil_of(channels, PANEL) * 2;
    return (buffer){ data, each, blocks * each + 5 * LANES };
}

/* Prefetches a line: the lines of a pixel are too short a run for the processor to predict the next
 * one. An address outside of the images is harmless. */
INLINE void ask_for(const float *at, int64_t floats_ahead)
{
    _mm_prefetch((const char *)((uintptr_t)at + (uintptr_t)floats_ahead * sizeof *at), _MM_HINT_T0);
}

#endif
