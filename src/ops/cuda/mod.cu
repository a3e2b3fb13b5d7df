/* See ops/mod.c. */
#include "ops/cuda/_binary.h"

namespace
{
struct mod_of {
    static __device__ __forceinline__ float value(float a, float b)
    {
        return a - b * floorf(a / b);
    }
    static __device__ __forceinline__ float slope(int which, float a, float b)
    {
        return which == 0 ? 1.0f : -floorf(a / b);
    }
};
} // namespace

BINARY_KERNEL(mod, mod_of);
