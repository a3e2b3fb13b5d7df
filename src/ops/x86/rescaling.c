/* y = x scale + offset, 8 or 16 at a time. */
#include "ops/x86/_pointwise.h"
#include "ops/args.h"

static inline vf value(const void *args, vf x)
{
    const keel_rescaling_args *a = args;
    return vf_fma(x, vf_set((float)a->scale), vf_set((float)a->offset));
}

static inline vf slope(const void *args, vf ignored __attribute__((unused)))
{
    return vf_set((float)((const keel_rescaling_args *)args)->scale);
}

POINTWISE_VECTOR(value, slope, c->out_grad[0])

POINTWISE_KERNEL(rescaling);
