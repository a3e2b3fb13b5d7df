/* conv2d on bfloat16 values with windows of 4x4 taps and the like by Winograd for 2x2: see
 * _pieces.h. By Winograd for 3x3 nothing was gained. */
#include "tensor/bfloat16.h"
typedef keel_bf16 value;
#include "ops/x86/_pieces.h"

extern const keel_kernel keel_kernel_conv2d_winograd_2x2_avx512_bf16;

/* At a stride of 1 the gradient of a pixel is a sum over pieces, each of which would be rounded. */
static keel_status prepare(keel_prepare *p)
{
    static const keel_kernel *const kernels[] = { &keel_kernel_conv2d_winograd_2x2_avx512_bf16 };
    const keel_conv2d_args *a = p->node->args;
    if (p->pass == KEEL_BACKWARD && (a->strides[0] == 1 || a->strides[1] == 1)) return KEEL_EUNSUP;
    return pieces_prepare(p, kernels, 1);
}

const keel_kernel keel_kernel_conv2d_winograd_pieces_avx512_bf16 = {
    .op = &keel_op_conv2d,
    .name = "winograd_pieces_avx512_bf16",
    .needs = KEEL_CPU_AVX512_BF16,
    .priority = KEEL_PRIORITY_PAIRS_WINOGRAD_PIECES,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = images_forward,
                [KEEL_BACKWARD] = pieces_backward,
                [KEEL_WEIGHTS] = images_weights },
    .release = images_release,
};
