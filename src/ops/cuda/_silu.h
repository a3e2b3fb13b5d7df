/* silu of a number, and its slope: see ops/silu.c. SHORT: for values of 11 bits or fewer. */
#ifndef KEEL_OPS_CUDA_SILU_H
#define KEEL_OPS_CUDA_SILU_H
#include "ops/cuda/_kernel.h"

template <bool SHORT> static __device__ __forceinline__ float silu_gate(float x)
{
    return SHORT ? short_inverse(1 + short_exp(-x)) : 1 / (1 + expf(-x));
}

template <bool SHORT> static __device__ __forceinline__ float silu_value(float x)
{
    return SHORT ? x * silu_gate<SHORT>(x) : x / (1 + expf(-x));
}

template <bool SHORT> static __device__ __forceinline__ float silu_slope(float x)
{
    const float s = silu_gate<SHORT>(x);
    return s * (1 + x * (1 - s));
}

#endif
