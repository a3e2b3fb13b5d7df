/* conv3d with oneDNN, all three passes: see _conv.c. */
#include "ops/dnnl/_conv.h"

KEEL_USES_OP(conv3d);

static keel_status prepare(keel_prepare *p)
{
    return keel_conv_dnnl_prepare(p, KEEL_CONV_3D);
}

const keel_kernel keel_kernel_conv3d_dnnl = {
    .op = &keel_op_conv3d,
    KEEL_CONV_DNNL_KERNEL,
};
