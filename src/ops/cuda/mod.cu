/* See ops/mod.c. */
#include "ops/cuda/_binary.h"

namespace
{
struct mod_of {
    static __device__ __forceinline__ float value(float a, float b)
    {
        const float rest = fmodf(a, b);
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    static __device__ __forceinline__ float slope(int which, float a, float b)
    {
        return which == 0 ? 1.0f : -floorf(a / b);
    }
};
} // namespace

BINARY_KERNEL(mod, mod_of);
