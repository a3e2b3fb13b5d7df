/* See ops/power.c. */
#include "ops/cuda/_binary.h"

namespace
{
struct power_of {
    static __device__ __forceinline__ float value(float a, float b)
    {
        return powf(a, b);
    }
    static __device__ __forceinline__ float slope(int which, float a, float b)
    {
        return which == 0 ? (b == 0 ? 0.0f : b * powf(a, b - 1))
                          : (a > 0 ? powf(a, b) * logf(a) : 0.0f);
    }
};
} // namespace

BINARY_KERNEL(power, power_of);
