/* See ops/threshold.c. */
#include "ops/cuda/_each.h"

namespace
{
struct threshold_of {
    static const bool from_out = false;
    float least, below;

    static threshold_of of(const keel_call *c)
    {
        const keel_threshold_args *a = cuda_args<keel_threshold_args>(c);
        return { (float)a->threshold, (float)a->value };
    }
    __device__ float value(float x) const
    {
        return x > least ? x : below;
    }
    __device__ float slope(float x) const
    {
        return x > least ? 1.0f : 0.0f;
    }
};
} // namespace

EACH_KERNEL(threshold, threshold_of);
