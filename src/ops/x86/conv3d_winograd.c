/* Convolution of volumes, whose windows are 2x2 or larger in their slices, by Winograd: see
 * _slices.h. */
typedef float value;
#include "ops/x86/_slices.h"

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
    return slices_prepare(p, kernels, sizeof kernels / sizeof *kernels);
}

const keel_kernel VECTOR_KERNEL(conv3d_winograd) = {
    .op = &keel_op_conv3d,
    .name = "winograd_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(WINOGRAD4),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = images_forward,
             [KEEL_BACKWARD] = slices_backward,
             [KEEL_WEIGHTS] = images_weights },
    .release = images_release,
};
