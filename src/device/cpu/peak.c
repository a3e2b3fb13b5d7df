/* See peak.h. The best of a few short runs counts, since other programs can only slow a run down.
 */
#include "device/cpu/peak.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/unroll.h"
#include "device/cpu/cpu.h"
#include <string.h>

enum { CHAINS = 12, ROUNDS = 20000 };

#if defined(__x86_64__)
#define OF_AVX512 __attribute__((target("arch=x86-64-v4")))
#define OF_AVX2   __attribute__((target("avx2,fma")))
#else
#define OF_AVX512
#define OF_AVX2
#endif

/* Independent chains of multiply-adds, enough to hide the latency, each in its own register; one
 * function per register width. */
#define MULTIPLY_ADD(width, attribute)                                                             \
    typedef float lanes##width __attribute__((vector_size(width * sizeof(float))));                \
    attribute static float multiply_add##width(float factor)                                       \
    {                                                                                              \
        lanes##width sum[CHAINS];                                                                  \
        const lanes##width f = factor - (lanes##width){ 0 };                                       \
        EACH(i, CHAINS) sum[i] = (float)i - (lanes##width){ 0 };                                   \
        for (int r = 0; r < ROUNDS; r++)                                                           \
            EACH(i, CHAINS) sum[i] = sum[i] * f + f;                                               \
        lanes##width all = f;                                                                      \
        EACH(i, CHAINS) all += sum[i];                                                             \
        return all[0];                                                                             \
    }
MULTIPLY_ADD(4, )
MULTIPLY_ADD(8, OF_AVX2)
MULTIPLY_ADD(16, OF_AVX512)

double keel_peak_flops(void)
{
    const keel_cpu_isa level = keel_cpu_level();
    float (*const multiply_add)(float) = level >= KEEL_CPU_AVX512 ? multiply_add16
                                         : level >= KEEL_CPU_AVX2 ? multiply_add8
                                                                  : multiply_add4;
    const int width = level >= KEEL_CPU_AVX512 ? 16 : level >= KEEL_CPU_AVX2 ? 8 : 4;
    volatile float keep;
    double best = 0;
    for (int k = 0; k < 8; k++) {
        const double begin = keel_seconds();
        keep = multiply_add(0.5f);
        const double rate = 2.0 * CHAINS * width * ROUNDS / (keel_seconds() - begin);
        if (rate > best) best = rate;
    }
    (void)keep;
    return best;
}

double keel_peak_bf16_flops(void)
{
    if (keel_cpu_level() >= KEEL_CPU_AMX) return keel_peak_bf16_flops_of_tiles();
    return keel_cpu_bf16() ? keel_peak_bf16_flops_of_vectors() : 0;
}

double keel_peak_bytes(void)
{
    enum { BYTES = 32 << 20 };
    double best = 0;
    char *from = keel_aligned_calloc(BYTES, 1), *to = keel_aligned_calloc(BYTES, 1);
    for (int k = 0; k < 3 && from && to; k++) {
        const double begin = keel_seconds();
        memcpy(to, from, BYTES);
        const double rate = 2.0 * BYTES / (keel_seconds() - begin);
        if (rate > best) best = rate;
    }
    keel_free(from);
    keel_free(to);
    return best;
}
