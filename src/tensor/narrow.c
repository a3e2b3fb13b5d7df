/* See narrow.h. */
#include "tensor/narrow.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"
#include <float.h>

void keel_narrow_read(float *to, keel_dtype type, const void *from, int64_t n)
{
    if (type == KEEL_BFLOAT16)
        keel_bf16_widen(to, from, n);
    else if (type == KEEL_FLOAT16)
        keel_f16_widen(to, from, n);
    else
        memcpy(to, from, (size_t)n * sizeof *to);
}

void keel_narrow_write(void *to, keel_dtype type, const float *from, int64_t n)
{
    if (type == KEEL_BFLOAT16)
        keel_bf16_narrow(to, from, n);
    else if (type == KEEL_FLOAT16)
        keel_f16_narrow(to, from, n);
    else
        memcpy(to, from, (size_t)n * sizeof *from);
}

void keel_narrow_round(float *x, keel_dtype type, int64_t n)
{
    uint16_t some[64];
    for (int64_t i = 0; i < n; i += 64) {
        const int64_t here = n - i < 64 ? n - i : 64;
        keel_narrow_write(some, type, x + i, here);
        keel_narrow_read(x + i, type, some, here);
    }
}

double keel_real_as(keel_dtype type, double x)
{
    float single = (float)x;
    uint16_t narrow;
    if (type == KEEL_FLOAT64) return x;
    if (keel_dtype_is_narrow(type)) {
        keel_narrow_write(&narrow, type, &single, 1);
        keel_narrow_read(&single, type, &narrow, 1);
    }
    return single;
}

double keel_real_largest(keel_dtype type)
{
    if (type == KEEL_FLOAT16) return 65504;
    return type == KEEL_BFLOAT16 ? 0x1.fep127 : FLT_MAX;
}
