/* conv_transpose with oneDNN, all three passes: see _conv.c. */
#include "ops/dnnl/_conv.h"

KEEL_USES_OP(conv_transpose);

static keel_status prepare(keel_prepare *p)
{
    return keel_conv_dnnl_prepare(p, KEEL_CONV_TRANSPOSE);
}

const keel_kernel keel_kernel_conv_transpose_dnnl = {
    .op = &keel_op_conv_transpose,
    KEEL_CONV_DNNL_KERNEL,
};
