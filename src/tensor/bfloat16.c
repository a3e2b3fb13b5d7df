/* Conversion of bfloat16 arrays, in loops that the compiler vectorises. */
#include "tensor/bfloat16.h"
#include "base/clones.h"

KEEL_CLONES
void keel_bf16_widen(float *restrict to, const keel_bf16 *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = keel_bf16_wide(from[i]);
}

KEEL_CLONES
void keel_bf16_narrow(keel_bf16 *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = keel_bf16_round(from[i]);
}
