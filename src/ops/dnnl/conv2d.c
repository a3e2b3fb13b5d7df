/* conv2d with oneDNN, all three passes: see _conv.c. */
#include "ops/dnnl/_conv.h"

KEEL_USES_OP(conv2d);

static keel_status prepare(keel_prepare *p)
{
    return keel_conv_dnnl_prepare(p, KEEL_CONV);
}

const keel_kernel keel_kernel_conv2d_dnnl = {
    .op = &keel_op_conv2d,
    KEEL_CONV_DNNL_KERNEL,
};
