/* float16: IEEE 754's binary16, 11 bits of precision up to 65504. Rounding is to nearest, ties to
 * even; numbers from 65520 on become infinity, subnormal values are kept, NaN stays a quiet NaN. */
#ifndef KEEL_TENSOR_FLOAT16_H
#define KEEL_TENSOR_FLOAT16_H
#include <stdint.h>
#include <string.h>

typedef uint16_t keel_f16;

static inline float keel_f16_wide(keel_f16 x)
{
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16, rest = x & 0x7fff;
    uint32_t bits = (rest << 13) + (112u << 23); /* exponents are 112 apart */
    float f;
    if (rest >= 0x7c00) { /* infinity and NaN, which becomes quiet */
        bits = 0x7f800000u | rest << 13;
        if (rest > 0x7c00) bits |= 0x400000u;
    } else if (rest < 0x400) { /* subnormal: rest * 2^-24, exactly */
        f = (float)rest * 0x1p-24f;
        memcpy(&bits, &f, sizeof bits);
    }
    bits |= sign;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline keel_f16 keel_f16_round(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    uint32_t half;
    if (size > 0x7f800000) {
        half = 0x7e00 | (size >> 13 & 0x3ff); /* a quiet NaN */
    } else if (size >= 0x477ff000) {
        half = 0x7c00;              /* 65520 and above */
    } else if (size < 0x38800000) { /* below 2^-14: the sum leaves as many bits as there are */
        float sum, f;
        memcpy(&f, &size, sizeof f);
        sum = f + 0.5f;
        memcpy(&half, &sum, sizeof half);
        half -= 0x3f000000;
    } else {
        half = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    }
    return (keel_f16)(sign | half);
}

/* Convert n elements; the arrays must not overlap. By F16C if the processor has it, with the same
 * bits. */
void keel_f16_widen(float *to, const keel_f16 *from, int64_t n);
void keel_f16_narrow(keel_f16 *to, const float *from, int64_t n);

#endif
