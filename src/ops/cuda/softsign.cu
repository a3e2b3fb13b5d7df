/* See ops/softsign.c. */
#include "ops/cuda/_each.h"

namespace
{
struct softsign_of {
    static const bool from_out = false;

    static softsign_of of(const keel_call *c)
    {
        (void)c;
        return {};
    }
    __device__ float value(float x) const
    {
        return x / (1 + fabsf(x));
    }
    __device__ float slope(float x) const
    {
        return 1 / ((1 + fabsf(x)) * (1 + fabsf(x)));
    }
};
} // namespace

EACH_KERNEL(softsign, softsign_of);
