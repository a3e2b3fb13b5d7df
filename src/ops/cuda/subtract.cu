/* See ops/subtract.c. */
#include "ops/cuda/_binary.h"

namespace
{
struct subtract_of {
    static __device__ __forceinline__ float value(float a, float b)
    {
        return a - b;
    }
    static __device__ __forceinline__ float slope(int which, [[maybe_unused]] float a,
                                                  [[maybe_unused]] float b)
    {
        return which == 0 ? 1.0f : -1.0f;
    }
};
} // namespace

BINARY_KERNEL(subtract, subtract_of);
