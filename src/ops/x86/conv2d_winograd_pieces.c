/* conv2d with windows of 4x4 to 6x6 taps and the like by Winograd for 3x3 or 2x2: see _pieces.h. */
typedef float value;
#include "ops/x86/_pieces.h"

extern const keel_kernel VECTOR_KERNEL(conv2d_winograd4), VECTOR_KERNEL(conv2d_winograd4_2x2),
    VECTOR_KERNEL(conv2d_winograd3_2x2);

static keel_status prepare(keel_prepare *p)
{
    static const keel_kernel *const kernels[] = { &VECTOR_KERNEL(conv2d_winograd4),
                                                  &VECTOR_KERNEL(conv2d_winograd3_2x2),
                                                  &VECTOR_KERNEL(conv2d_winograd4_2x2) };
    KEEL_TRY(vector_prepare(p));
    return pieces_prepare(p, kernels, sizeof kernels / sizeof *kernels);
}

const keel_kernel VECTOR_KERNEL(conv2d_winograd_pieces) = {
    .op = &keel_op_conv2d,
    .name = "winograd_pieces_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(WINOGRAD_PIECES),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = images_forward,
             [KEEL_BACKWARD] = pieces_backward,
             [KEEL_WEIGHTS] = images_weights },
    .release = images_release,
};
