/* bfloat16: the upper half of a float32. Rounding is to nearest, ties to even; NaN stays NaN, and
 * subnormal values are kept. */
#ifndef KEEL_TENSOR_BFLOAT16_H
#define KEEL_TENSOR_BFLOAT16_H
#include <stdint.h>
#include <string.h>

typedef uint16_t keel_bf16;

static inline float keel_bf16_wide(keel_bf16 x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline keel_bf16 keel_bf16_round(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return (keel_bf16)(bits >> 16 | 0x40); /* a quiet NaN */
    return (keel_bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Convert n elements; the arrays must not overlap. */
void keel_bf16_widen(float *to, const keel_bf16 *from, int64_t n);
void keel_bf16_narrow(keel_bf16 *to, const float *from, int64_t n);

#endif
