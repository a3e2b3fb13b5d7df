/* See ops/mish.c. */
#include "ops/cuda/_each.h"

namespace
{
/* log(1 + exp(x)) */
__device__ __forceinline__ float soft(float x)
{
    return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}

struct mish_of {
    static const bool from_out = false;

    static mish_of of(const keel_call *c)
    {
        (void)c;
        return {};
    }
    __device__ float value(float x) const
    {
        return x * tanhf(soft(x));
    }
    __device__ float slope(float x) const
    {
        const float t = tanhf(soft(x)), s = 1 / (1 + expf(-x));
        return t + x * s * (1 - t * t);
    }
};
} // namespace

EACH_KERNEL(mish, mish_of);
