/* Transposed convolution at a stride of 1 or 2 by Winograd. */
typedef float value;
#include "ops/x86/_transposed.h"

extern const keel_kernel VECTOR_KERNEL(conv2d_winograd), VECTOR_KERNEL(conv2d_winograd4),
    VECTOR_KERNEL(conv2d_winograd_strided), VECTOR_KERNEL(conv2d_winograd_pieces),
    VECTOR_KERNEL(conv2d_winograd3_2x2), VECTOR_KERNEL(conv2d_winograd4_2x2);

static keel_status prepare(keel_prepare *p)
{
    static const keel_kernel *const kernels[] = {
        &VECTOR_KERNEL(conv2d_winograd4),        &VECTOR_KERNEL(conv2d_winograd),
        &VECTOR_KERNEL(conv2d_winograd_strided), &VECTOR_KERNEL(conv2d_winograd_pieces),
        &VECTOR_KERNEL(conv2d_winograd3_2x2),    &VECTOR_KERNEL(conv2d_winograd4_2x2)
    };
    KEEL_TRY(vector_prepare(p));
    return transposed_prepare(p, kernels, sizeof kernels / sizeof *kernels);
}

const keel_kernel VECTOR_KERNEL(conv_transpose_winograd) = {
    .op = &keel_op_conv_transpose,
    .name = "winograd_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(WINOGRAD4),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = transposed_forward,
             [KEEL_BACKWARD] = transposed_backward,
             [KEEL_WEIGHTS] = transposed_weights },
    .release = transposed_release,
};
