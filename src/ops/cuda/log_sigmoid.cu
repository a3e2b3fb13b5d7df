/* See ops/log_sigmoid.c. */
#include "ops/cuda/_each.h"

namespace
{
struct log_sigmoid_of {
    static const bool from_out = true;

    static log_sigmoid_of of(const keel_call *c)
    {
        (void)c;
        return {};
    }
    __device__ float value(float x) const
    {
        return (x < 0 ? x : 0) - log1pf(expf(-fabsf(x)));
    }
    __device__ float slope(float y) const
    {
        return -expm1f(y);
    }
};
} // namespace

EACH_KERNEL(log_sigmoid, log_sigmoid_of);
