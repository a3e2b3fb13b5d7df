/* Depthwise convolution: see _depthwise.h. */
#include "ops/x86/_depthwise.h"

KEEL_USES_OP(depthwise_conv2d);

static keel_window window_of(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    return keel_window_of(n, n->weight[0].shape.dim, a->strides, a->dilation, a->pad);
}

static keel_status prepare(keel_prepare *p)
{
    const int64_t *w = p->node->weight[0].shape.dim;
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS) return KEEL_EUNSUP;
    const keel_window v = window_of(p->node);
    if (!depthwise_pays(p, &v)) return KEEL_EUNSUP;
    p->scratch = depthwise_scratch(p, &v, w[2] * w[3]);
    return KEEL_OK;
}

#define VALUE_FILE "ops/x86/_depthwise.h"
#include "ops/x86/_values.h"

const keel_kernel VECTOR_KERNEL(depthwise_conv2d) = {
    .op = &keel_op_depthwise_conv2d,
    .name = VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(OWN),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward_f32,
             [KEEL_BACKWARD] = backward_f32,
             [KEEL_WEIGHTS] = weights_f32 },
    .narrow = { [KEEL_FORWARD] = forward_bf16,
                [KEEL_BACKWARD] = backward_bf16,
                [KEEL_WEIGHTS] = weights_bf16 },
};
