/* Convolutions of volumes to very few filters: see _few_filters.h. */
#include "ops/args.h"
#include "ops/window.h"

static keel_window window_of(const keel_node *n)
{
    const keel_conv3d_args *a = n->args;
    return keel_window_of(n, n->weight[0].shape.dim, a->strides, a->dilation, a->pad);
}

static int64_t groups_of(const keel_node *n)
{
    return ((const keel_conv3d_args *)n->args)->groups;
}

#include "ops/x86/_few_filters.h"

#define VALUE_FILE "ops/x86/_few.h"
#include "ops/x86/_values.h"
#define VALUE_FILE "ops/x86/_few_filters.h"
#include "ops/x86/_values.h"

KEEL_USES_OP(conv3d);

const keel_kernel VECTOR_KERNEL(conv3d_few_filters) = {
    .op = &keel_op_conv3d,
    .name = "few_filters_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(FEW_FILTERS),
    .prepare = few_filters_prepare,
    .run = { [KEEL_FORWARD] = forward_f32, [KEEL_WEIGHTS] = weights_f32 },
    .narrow = { [KEEL_FORWARD] = forward_bf16, [KEEL_WEIGHTS] = weights_bf16 },
};
