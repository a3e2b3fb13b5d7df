/* y = x scale + offset of bfloat16 values, 8 or 16 at a time; float32's reference is as fast as
 * memory.
 */
#include "ops/x86/_pointwise.h"
#include "ops/args.h"

KEEL_USES_OP(rescaling);

static inline vf value(const void *args, vf x)
{
    const keel_rescaling_args *a = args;
    return vf_fma(x, vf_set((float)a->scale), vf_set((float)a->offset));
}

static inline vf slope(const void *args, vf ignored __attribute__((unused)))
{
    return vf_set((float)((const keel_rescaling_args *)args)->scale);
}

POINTWISE_VECTOR_OF(keel_bf16, bf16, value, slope, c->out_grad[0])

const keel_kernel VECTOR_KERNEL(rescaling) = {
    .op = &keel_op_rescaling,
    .name = VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(VECTOR),
    .prepare = vector_prepare,
    .narrow = { [KEEL_FORWARD] = forward_bf16, [KEEL_BACKWARD] = backward_bf16 },
};
