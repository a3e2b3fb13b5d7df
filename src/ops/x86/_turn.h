/* Matrices laid out the other way. */
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

/* to [columns, rows] = the transpose of from [rows, columns]. */
static inline void turn_matrix(float *to, const float *from, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i += 8)
        for (int64_t k = 0; k < columns; k += 8) {
            const int64_t i_end = i + 8 < rows ? i + 8 : rows;
            const int64_t k_end = k + 8 < columns ? k + 8 : columns;
            if (i + 8 <= rows && k + 8 <= columns)
                turn_eight(to + k * rows + i, rows, from + i * columns + k, columns);
            else
                for (int64_t e = k; e < k_end; e++)
                    for (int64_t j = i; j < i_end; j++) to[e * rows + j] = from[j * columns + e];
        }
}

#endif
