/* Transposed convolution on bfloat16 values by Winograd: windows of 3x3 at stride 1, of 4x4 also at
 * stride 2. */
#include "tensor/bfloat16.h"
typedef keel_bf16 value;
#include "ops/x86/_transposed.h"

extern const keel_kernel keel_kernel_conv2d_winograd_avx512_bf16,
    keel_kernel_conv2d_winograd_2x2_avx512_bf16, keel_kernel_conv2d_winograd_pieces_avx512_bf16;

/* With AMX oneDNN's products are several times as fast, which Winograd's fewer do not make up. */
static keel_status prepare(keel_prepare *p)
{
    static const keel_kernel *const kernels[] = { &keel_kernel_conv2d_winograd_avx512_bf16,
                                                  &keel_kernel_conv2d_winograd_2x2_avx512_bf16,
                                                  &keel_kernel_conv2d_winograd_pieces_avx512_bf16 };
    if (keel_cpu_level() >= KEEL_CPU_AMX) return KEEL_EUNSUP;
    return transposed_prepare(p, kernels, sizeof kernels / sizeof *kernels);
}

const keel_kernel keel_kernel_conv_transpose_winograd_avx512_bf16 = {
    .op = &keel_op_conv_transpose,
    .name = "winograd_avx512_bf16",
    .needs = KEEL_CPU_AVX512_BF16,
    .priority = KEEL_PRIORITY_PAIRS_WINOGRAD,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = transposed_forward,
                [KEEL_BACKWARD] = transposed_backward,
                [KEEL_WEIGHTS] = transposed_weights },
    .release = transposed_release,
};
