/* See ops/arctan2.c. */
#include "ops/cuda/_binary.h"

namespace
{
struct arctan2_of {
    static __device__ __forceinline__ float value(float a, float b)
    {
        return atan2f(a, b);
    }
    static __device__ __forceinline__ float slope(int which, float a, float b)
    {
        return which == 0 ? b / (a * a + b * b) : -a / (a * a + b * b);
    }
};
} // namespace

BINARY_KERNEL(arctan2, arctan2_of);
