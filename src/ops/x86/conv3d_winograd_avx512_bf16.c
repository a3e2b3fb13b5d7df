/* Convolution of volumes on bfloat16 values by Winograd: windows of 2x2, 3x3 and 4x4 in their
 * slices. */
#include "tensor/bfloat16.h"
typedef keel_bf16 value;
#include "ops/x86/_slices.h"

extern const keel_kernel keel_kernel_conv2d_winograd_avx512_bf16,
    keel_kernel_conv2d_winograd_2x2_avx512_bf16, keel_kernel_conv2d_winograd_pieces_avx512_bf16;

/* With AMX oneDNN's products are several times as fast, which Winograd's fewer do not make up. */
static keel_status prepare(keel_prepare *p)
{
    static const keel_kernel *const kernels[] = { &keel_kernel_conv2d_winograd_avx512_bf16,
                                                  &keel_kernel_conv2d_winograd_2x2_avx512_bf16,
                                                  &keel_kernel_conv2d_winograd_pieces_avx512_bf16 };
    if (keel_cpu_level() >= KEEL_CPU_AMX) return KEEL_EUNSUP;
    return slices_prepare(p, kernels, sizeof kernels / sizeof *kernels);
}

const keel_kernel keel_kernel_conv3d_winograd_avx512_bf16 = {
    .op = &keel_op_conv3d,
    .name = "winograd_avx512_bf16",
    .needs = KEEL_CPU_AVX512_BF16,
    .priority = KEEL_PRIORITY_PAIRS_WINOGRAD,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = images_forward,
                [KEEL_BACKWARD] = slices_backward,
                [KEEL_WEIGHTS] = images_weights },
    .release = images_release,
};
