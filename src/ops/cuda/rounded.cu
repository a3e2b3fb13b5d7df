/* See ops/rounded.c. */
#include "ops/cuda/_each.h"
extern "C" {
#include "ops/rounded.h"
}

namespace
{
struct rounded_of {
    keel_rounding to;
    static const bool from_out = false;
    static rounded_of of(const keel_call *c)
    {
        return { cuda_args<keel_rounded_args>(c)->to };
    }
    /* NaN stays; 0 is +0 */
    static __device__ __forceinline__ float within(float x, float end)
    {
        return (x < -end ? -end : x > end ? end : truncf(x)) + 0.0f;
    }
    __device__ __forceinline__ float value(float x) const
    {
        switch (to) {
        case KEEL_FLOOR:
            return floorf(x);
        case KEEL_CEIL:
            return ceilf(x);
        case KEEL_NEAREST:
            return rintf(x);
        case KEEL_TRUNC:
            return truncf(x);
        case KEEL_TO_INT32:
            return within(x, 2147483648.0f);
        case KEEL_TO_INT64:
            return within(x, 9223372036854775808.0f);
        case KEEL_SIGN_BIT:
            return __float_as_uint(x) >> 31 ? 1.0f : 0.0f;
        default:
            return x > 0 ? 1.0f : x < 0 ? -1.0f : x != x ? x : 0;
        }
    }
    __device__ __forceinline__ float slope(float) const
    {
        return 0;
    }
};
} // namespace

EACH_KERNEL(rounded, rounded_of);
