/* See ops/bessel_i0.c. Sums end where float32 sees no more of them. */
#include "ops/cuda/_each.h"

namespace
{
template <int ORDER> __device__ __forceinline__ float bessel(float x)
{
    const double size = fabsf(x), mu = 4.0 * ORDER * ORDER, least = 1e-9;
    double term = 1, sum = 1;
    if (size < 20) {
        const double q = size * size / 4;
        sum = term = ORDER ? size / 2 : 1;
        for (int k = 1; term > least * sum; k++) {
            term *= q / ((double)k * (k + ORDER));
            sum += term;
        }
    } else {
        for (int k = 1; k < 30 && fabs(term) > least * sum; k++) {
            term *= -(mu - (2.0 * k - 1) * (2.0 * k - 1)) / (k * 8.0 * size);
            sum += term;
        }
        sum *= exp(size) / sqrt(2 * 3.14159265358979323846 * size);
    }
    return (float)(ORDER && x < 0 ? -sum : sum);
}

struct bessel_i0_of {
    static const bool from_out = false;
    static bessel_i0_of of(const keel_call *)
    {
        return {};
    }
    __device__ __forceinline__ float value(float x) const
    {
        return bessel<0>(x);
    }
    __device__ __forceinline__ float slope(float x) const
    {
        return bessel<1>(x);
    }
};
} // namespace

EACH_KERNEL(bessel_i0, bessel_i0_of);
