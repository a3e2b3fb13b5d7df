/* See ops/relu.c. Backward reads the output, whose sign tells on which side the input was. */
#include "ops/cuda/_each.h"

namespace
{
struct relu {
    static const bool from_out = true;
    float negative, at, threshold, cap; /* at: the slope where y is 0 */

    static relu of(const keel_call *c)
    {
        const keel_relu_args *a = cuda_args<keel_relu_args>(c);
        const float negative = (float)a->negative_slope;
        return { negative, a->capped || a->threshold != 0 ? 0 : negative, (float)a->threshold,
                 a->capped ? (float)a->max_value : INFINITY };
    }
    __device__ float value(float x) const
    {
        const float low = negative != 0 ? negative * (x - threshold) : 0;
        const float y = x <= threshold ? low : x; /* NaN stays */
        return y > cap ? cap : y;
    }
    __device__ float slope(float y) const
    {
        return y > 0 ? (y >= cap ? 0.0f : 1.0f) : y < 0 ? negative : at;
    }
};
} // namespace

EACH_KERNEL(relu, relu);
