/* Transposed convolution of 3x3 windows on bfloat16 values, stride 1, by Winograd. */
#include "tensor/bfloat16.h"
typedef keel_bf16 value;
#include "ops/x86/_transposed.h"

extern const keel_kernel keel_kernel_conv2d_winograd_avx512_bf16;

/* With AMX oneDNN's products are several times as fast, which Winograd's fewer do not make up. */
static keel_status prepare(keel_prepare *p)
{
    static const keel_kernel *const kernels[] = { &keel_kernel_conv2d_winograd_avx512_bf16 };
    if (keel_cpu_level() >= KEEL_CPU_AMX) return KEEL_EUNSUP;
    return transposed_prepare(p, kernels, 1);
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
