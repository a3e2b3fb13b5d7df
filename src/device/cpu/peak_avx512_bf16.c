/* The rate of AVX512_BF16's products of pairs; see peak.h. */
#include "device/cpu/peak.h"
#include "base/clock.h"
#include "base/unroll.h"
#include <immintrin.h>

enum { CHAINS = 12, ROUNDS = 20000, TURNS = 8 };

/* Independent chains, enough to hide the latency. */
static float products(int pair)
{
    const __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
    __m512 sum[CHAINS];
    EACH(i, CHAINS) sum[i] = _mm512_set1_ps((float)i);
    for (int r = 0; r < ROUNDS; r++)
        EACH(i, CHAINS) sum[i] = _mm512_dpbf16_ps(sum[i], x, x);
    EACH(i, CHAINS)
        if (i > 0) sum[0] = _mm512_add_ps(sum[0], sum[i]);
    return _mm512_reduce_add_ps(sum[0]);
}

double keel_peak_bf16_flops_of_vectors(void)
{
    volatile float keep;
    double best = 0;
    for (int k = 0; k < TURNS; k++) {
        const double begin = keel_seconds();
        keep = products(0x3f003f00);
        const double rate = 64.0 * CHAINS * ROUNDS / (keel_seconds() - begin);
        if (rate > best) best = rate;
    }
    (void)keep;
    return best;
}
