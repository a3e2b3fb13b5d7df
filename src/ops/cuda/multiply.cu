/* See ops/multiply.c. */
#include "ops/cuda/_binary.h"

namespace
{
struct multiply_of {
    static __device__ __forceinline__ float value(float a, float b)
    {
        return a * b;
    }
    static __device__ __forceinline__ float slope(int which, float a, float b)
    {
        return which == 0 ? b : a;
    }
};
} // namespace

BINARY_KERNEL(multiply, multiply_of);
