/* See ops/squareplus.c. */
#include "ops/cuda/_each.h"

namespace
{
struct squareplus_of {
    static const bool from_out = false;
    float b;

    static squareplus_of of(const keel_call *c)
    {
        const keel_squareplus_args *a = cuda_args<keel_squareplus_args>(c);
        return { (float)a->b };
    }
    __device__ float value(float x) const
    {
        const float root = sqrtf(x * x + b);
        return 0.5f * (x < 0 && x > -INFINITY ? b / (root - x) : x + root);
    }
    __device__ float slope(float x) const
    {
        const float root = sqrtf(x * x + b);
        if (x < 0) return 0.5f * b / (root * (root - x));
        return root == 0 ? 0.5f : 0.5f * (1 + x / root);
    }
};
} // namespace

EACH_KERNEL(squareplus, squareplus_of);
