/* See ops/softplus.c. */
#include "ops/cuda/_each.h"

namespace
{
/* log(1 + exp(x)) */
__device__ __forceinline__ float soft(float x)
{
    return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}

struct softplus_of {
    static const bool from_out = true;

    static softplus_of of(const keel_call *c)
    {
        (void)c;
        return {};
    }
    __device__ float value(float x) const
    {
        return soft(x);
    }
    __device__ float slope(float y) const
    {
        return -expm1f(-y);
    }
};
} // namespace

EACH_KERNEL(softplus, softplus_of);
