/* See ops/hard_shrink.c. */
#include "ops/cuda/_each.h"

namespace
{
struct hard_shrink_of {
    static const bool from_out = true;
    float least;

    static hard_shrink_of of(const keel_call *c)
    {
        const keel_threshold_args *a = cuda_args<keel_threshold_args>(c);
        return { (float)a->threshold };
    }
    __device__ float value(float x) const
    {
        return fabsf(x) > least ? x : 0;
    }
    __device__ float slope(float y) const
    {
        return y != 0 ? 1.0f : 0.0f;
    }
};
} // namespace

EACH_KERNEL(hard_shrink, hard_shrink_of);
