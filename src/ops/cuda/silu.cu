/* See ops/silu.c. */
#include "ops/cuda/_each.h"

namespace
{
template <bool SHORT> struct silu_of {
    static const bool from_out = false;

    static silu_of of(const keel_call *c)
    {
        (void)c;
        return {};
    }
    static __device__ __forceinline__ float gate(float x)
    {
        return SHORT ? short_inverse(1 + short_exp(-x)) : 1 / (1 + expf(-x));
    }
    __device__ float value(float x) const
    {
        return SHORT ? x * gate(x) : x / (1 + expf(-x));
    }
    __device__ float slope(float x) const
    {
        const float s = gate(x);
        return s * (1 + x * (1 - s));
    }
};
} // namespace

EACH_KERNELS(silu, silu_of<false>, silu_of<true>);
