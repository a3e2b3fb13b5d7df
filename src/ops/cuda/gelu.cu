/* See ops/gelu.c. The tail of the normal distribution is that of erfc, which keeps its digits. */
#include "ops/cuda/_each.h"

namespace
{
#define ROOT      0.79788456080286535588f /* sqrt(2 / pi) */
#define ROOT_HALF 0.70710678118654752440f
#define DENSITY   0.39894228040143267794f /* 1 / sqrt(2 pi) */
#define CUBIC     0.044715f

__device__ __forceinline__ float half_of_tanh(float x)
{
    return 1 / (1 + expf(-2 * ROOT * (x + CUBIC * x * x * x)));
}

struct gelu_of {
    static const bool from_out = false;
    bool approximate;

    static gelu_of of(const keel_call *c)
    {
        return { cuda_args<keel_gelu_args>(c)->approximate };
    }
    __device__ float value(float x) const
    {
        if (approximate) return x * half_of_tanh(x);
        return 0.5f * x * erfcf(-x * ROOT_HALF);
    }
    __device__ float slope(float x) const
    {
        if (approximate)
            return half_of_tanh(x) *
                   (1 + x * half_of_tanh(-x) * (2 * ROOT * (1 + 3 * CUBIC * x * x)));
        return 0.5f * erfcf(-x * ROOT_HALF) + x * expf(-0.5f * x * x) * DENSITY;
    }
};
} // namespace

EACH_KERNEL(gelu, gelu_of);
