/* See narrow.h. */
#include "tensor/narrow.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"

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
