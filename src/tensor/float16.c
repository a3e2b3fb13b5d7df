/* Conversion of float16 arrays: eight at a time by F16C, which every processor with AVX2 has, else
 * one after another. */
#include "tensor/float16.h"

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx,f16c"))) static int64_t widen_some(float *to, const keel_f16 *from,
                                                              int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + i))));
    return i;
}

__attribute__((target("avx,f16c"))) static int64_t narrow_some(keel_f16 *to, const float *from,
                                                               int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

static int has_f16c(void) /* clang 14 does not know f16c by name */
{
    return __builtin_cpu_supports("avx2");
}
#else
#define widen_some(to, from, n)  0
#define narrow_some(to, from, n) 0
#define has_f16c()               0
#endif

void keel_f16_widen(float *to, const keel_f16 *from, int64_t n)
{
    for (int64_t i = has_f16c() ? widen_some(to, from, n) : 0; i < n; i++)
        to[i] = keel_f16_wide(from[i]);
}

void keel_f16_narrow(keel_f16 *to, const float *from, int64_t n)
{
    for (int64_t i = has_f16c() ? narrow_some(to, from, n) : 0; i < n; i++)
        to[i] = keel_f16_round(from[i]);
}
