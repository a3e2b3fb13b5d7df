/* See ops/leaky_relu.c. */
#include "ops/cuda/_each.h"

namespace
{
struct leaky_relu_of {
    static const bool from_out = true;
    float negative;

    static leaky_relu_of of(const keel_call *c)
    {
        return { (float)cuda_args<keel_leaky_relu_args>(c)->negative_slope };
    }
    __device__ float value(float x) const
    {
        return x > 0 ? x : negative * x;
    }
    __device__ float slope(float y) const
    {
        return y > 0 ? 1.0f : negative;
    }
};
} // namespace

EACH_KERNEL(leaky_relu, leaky_relu_of);
