/* Turns 8 x 8 numbers, for matrices that are laid out the other way. */
#ifndef KEEL_OPS_X86_TURN_H
#define KEEL_OPS_X86_TURN_H
#include "base/unroll.h"
#include <immintrin.h>
#include <stdint.h>

/* to[e][i] = from[i][e] for 8 x 8 */
static inline void turn_eight(float *to, int64_t to_row, const float *from, int64_t from_row)
{
    __m256 a[8], b[8];
    EACH(i, 8) a[i] = _mm256_loadu_ps(from + i * from_row);
    EACH(i, 4) {
        b[2 * i] = _mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]);
    }
    EACH(i, 2) {
        const __m256 *const four = b + 4 * i;
        a[4 * i] = _mm256_shuffle_ps(four[0], four[2], 0x44);
        a[4 * i + 1] = _mm256_shuffle_ps(four[0], four[2], 0xee);
        a[4 * i + 2] = _mm256_shuffle_ps(four[1], four[3], 0x44);
        a[4 * i + 3] = _mm256_shuffle_ps(four[1], four[3], 0xee);
    }
    EACH(i, 4) {
        _mm256_storeu_ps(to + i * to_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * to_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}

#endif
