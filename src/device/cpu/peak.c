/* See peak.h. The best of a few short runs: other programs can only slow them down. */
#include "device/cpu/peak.h"
#include "base/clock.h"
#include "base/clones.h"
#include "base/memory.h"
#include "base/unroll.h"
#include "device/cpu/cpu.h"
#include <string.h>

enum { CHAINS = 12, WIDTH = 16, ROUNDS = 20000 };
typedef float lanes __attribute__((vector_size(WIDTH * sizeof(float))));

/* Independent chains of multiply-adds, as many as hide the latency. */
KEEL_CLONES static float multiply_add(float factor)
{
    lanes sum[CHAINS];
    const lanes f = factor - (lanes){ 0 };
    EACH(i, CHAINS) sum[i] = (float)i - (lanes){ 0 };
    for (int r = 0; r < ROUNDS; r++)
        EACH(i, CHAINS) sum[i] = sum[i] * f + f;
    lanes all = f;
    EACH(i, CHAINS) all += sum[i];
    return all[0];
}

double keel_peak_flops(void)
{
    volatile float keep;
    double best = 0;
    for (int k = 0; k < 8; k++) {
        const double begin = keel_seconds();
        keep = multiply_add(0.5f);
        const double rate = 2.0 * CHAINS * WIDTH * ROUNDS / (keel_seconds() - begin);
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
