/* Transposed convolution to very few filters, such as the image that a generator draws: the
 * gradients of a convolution of few channels. Its backward pass is that convolution itself, which
 * is left to others. */
typedef float value;
#include "ops/x86/_transposed.h"

extern const keel_kernel VECTOR_KERNEL(conv2d_few_channels), keel_kernel_conv2d_few_avx512;

static const keel_kernel *const kernels[] = {
    &VECTOR_KERNEL(conv2d_few_channels),
#ifdef __AVX512F__
    &keel_kernel_conv2d_few_avx512,
#endif
};

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    return transposed_prepare(p, kernels, sizeof kernels / sizeof *kernels);
}

const keel_kernel VECTOR_KERNEL(conv_transpose_few) = {
    .op = &keel_op_conv_transpose,
    .name = "few_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(FEW_FILTERS),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = transposed_forward,
             [KEEL_BACKWARD] = transposed_backward,
             [KEEL_WEIGHTS] = transposed_weights },
    .release = transposed_release,
};
