/* conv2d on bfloat16 values by oneDNN, if it uses AMX, which computes several times as many
 * products as our kernel of pairs. Our own on tiles takes what oneDNN declines, and what the table
 * names it for. See _conv.c. */
#include "ops/dnnl/_conv.h"

KEEL_USES_OP(conv2d);

static keel_status prepare(keel_prepare *p)
{
    return keel_conv_dnnl_prepare_tiles(p, KEEL_CONV);
}

const keel_kernel keel_kernel_conv2d_amx_dnnl = {
    .op = &keel_op_conv2d,
    .name = "amx_dnnl",
    .priority = KEEL_PRIORITY_TILES,
    .vendor = true,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = keel_conv_dnnl_forward,
                [KEEL_BACKWARD] = keel_conv_dnnl_backward,
                [KEEL_WEIGHTS] = keel_conv_dnnl_weights },
    .release = keel_conv_dnnl_release,
};
