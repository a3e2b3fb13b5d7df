/* depthwise_conv2d with oneDNN, all three passes: see _conv.c. */
#include "ops/dnnl/_conv.h"

KEEL_USES_OP(depthwise_conv2d);

static keel_status prepare(keel_prepare *p)
{
    return keel_conv_dnnl_prepare(p, KEEL_CONV_DEPTHWISE);
}

const keel_kernel keel_kernel_depthwise_conv2d_dnnl = {
    .op = &keel_op_depthwise_conv2d,
    KEEL_CONV_DNNL_KERNEL,
};
