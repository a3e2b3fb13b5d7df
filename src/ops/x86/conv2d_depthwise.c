/* Convolution with as many groups as channels: a depthwise one, whose kernel [KH, KW, 1, C M] lies
 * in memory as that of depthwise_conv2d does. See _depthwise.h. */
#include "ops/x86/_depthwise.h"

KEEL_USES_OP(conv2d);

static keel_window window_of(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    return keel_window_of(n, n->weight[0].shape.dim, a->strides, a->dilation, a->pad);
}

static keel_status prepare(keel_prepare *p)
{
    const int64_t *w = p->node->weight[0].shape.dim;
    const int64_t groups = ((const keel_conv2d_args *)p->node->args)->groups;
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS || groups == 1 || w[2] != 1) return KEEL_EUNSUP;
    const keel_window v = window_of(p->node);
    if (!by_lines(&v)) return KEEL_EUNSUP;
    if (!depthwise_pays(p, &v)) return KEEL_EUNSUP;
    p->scratch = depthwise_scratch(p, &v, w[3]);
    return KEEL_OK;
}

#define VALUE_FILE "ops/x86/_depthwise.h"
#include "ops/x86/_values.h"

const keel_kernel VECTOR_KERNEL(conv2d_depthwise) = {
    .op = &keel_op_conv2d,
    .name = "depthwise_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(DEPTHWISE),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward_f32,
             [KEEL_BACKWARD] = backward_f32,
             [KEEL_WEIGHTS] = weights_f32 },
    .narrow = { [KEEL_FORWARD] = forward_bf16,
                [KEEL_BACKWARD] = backward_bf16,
                [KEEL_WEIGHTS] = weights_bf16 },
};
