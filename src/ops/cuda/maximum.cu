/* See ops/maximum.c. */
#include "ops/cuda/_binary.h"

namespace
{
struct maximum_of {
    static __device__ __forceinline__ float value(float a, float b)
    {
        return a >= b || a != a ? a : b;
    }
    static __device__ __forceinline__ float slope(int which, float a, float b)
    {
        return which == 0 ? (a >= b ? 1.0f : 0.0f) : (a >= b ? 0.0f : 1.0f);
    }
};
} // namespace

BINARY_KERNEL(maximum, maximum_of);
