/* See ops/erfinv.c. One step less than there: a result that is float32 has its digits by then. */
#include "ops/cuda/_each.h"

namespace
{
const double HALF_ROOT_PI = 0.88622692545275801365;

struct erfinv_of {
    static const bool from_out = true;
    static erfinv_of of(const keel_call *)
    {
        return {};
    }
    __device__ __forceinline__ float value(float x) const
    {
        const double size = fabsf(x), l = log1p(-size * size);
        const double b = 2 / (3.14159265358979323846 * 0.147) + l / 2;
        if (!(size < 1)) return size == 1 ? copysignf(INFINITY, x) : NAN;
        double y = sqrt(fmax(sqrt(b * b - l / 0.147) - b, 0.0));
#ifdef __CUDACC__
#pragma unroll 1
#endif
        for (int i = 0; i < 3; i++) {
            const double over = y < 1 ? erf(y) - size : 1 - size - erfc(y);
            y -= over * HALF_ROOT_PI * exp(y * y);
        }
        return copysignf((float)y, x);
    }
    __device__ __forceinline__ float slope(float y) const
    {
        return (float)HALF_ROOT_PI * expf(y * y);
    }
};
} // namespace

EACH_KERNEL(erfinv, erfinv_of);
