/* conv_transpose with oneDNN, all three passes: see _conv.c. */
#include "ops/dnnl/_conv.h"

KEEL_USES_OP(conv_transpose);

static keel_status prepare(keel_prepare *p)
{
    return keel_conv_dnnl_prepare(p, KEEL_CONV_TRANSPOSE);
}

const keel_kernel keel_kernel_conv_transpose_dnnl = {
    .op = &keel_op_conv_transpose,
    .name = "dnnl",
    .priority = KEEL_PRIORITY_LIBRARY,
    .vendor = true,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = keel_conv_dnnl_forward,
             [KEEL_BACKWARD] = keel_conv_dnnl_backward,
             [KEEL_WEIGHTS] = keel_conv_dnnl_weights },
    .narrow = { [KEEL_FORWARD] = keel_conv_dnnl_forward,
                [KEEL_BACKWARD] = keel_conv_dnnl_backward,
                [KEEL_WEIGHTS] = keel_conv_dnnl_weights },
    .release = keel_conv_dnnl_release,
};
