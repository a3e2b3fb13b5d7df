/* See ops/celu.c. */
#include "ops/cuda/_each.h"

namespace
{
struct celu_of {
    static const bool from_out = true;
    float alpha;

    static celu_of of(const keel_call *c)
    {
        return { (float)cuda_args<keel_alpha_args>(c)->alpha };
    }
    __device__ float value(float x) const
    {
        return x > 0 ? x : alpha * expm1f(x / alpha);
    }
    __device__ float slope(float y) const
    {
        return y > 0 ? 1.0f : y / alpha + 1;
    }
};
} // namespace

EACH_KERNEL(celu, celu_of);
