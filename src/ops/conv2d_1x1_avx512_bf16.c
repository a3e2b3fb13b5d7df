/* conv2d with 1x1 windows on bfloat16 values, all three passes: see _product_avx512_bf16.c. */
#include "ops/_product_avx512_bf16.h"
#include "ops/args.h"

static keel_status prepare(keel_prepare *p)
{
    const keel_conv2d_args *a = p->node->args;
    const int64_t *w = p->node->weight[0].shape.dim;
    const bool pad = a->pad[0] || a->pad[1] || a->pad[2] || a->pad[3];
    if (w[0] != 1 || w[1] != 1 || a->groups != 1 || pad) return KEEL_EUNSUP;
    return keel_product_bf16_prepare(p);
}

const keel_kernel keel_kernel_conv2d_1x1_avx512_bf16 = {
    .op = "conv2d",
    .name = "1x1_avx512_bf16",
    .priority = 120,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = keel_product_bf16_forward,
                [KEEL_BACKWARD] = keel_product_bf16_backward,
                [KEEL_WEIGHTS] = keel_product_bf16_weights },
};
