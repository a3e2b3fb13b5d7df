/* Zeros around images. */
#include "layers/operations/_borders.h"
#include "ops/pad.h"

typedef struct args_t {
    int64_t top_padding, bottom_padding, target_height;
    int64_t left_padding, right_padding, target_width;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, top_padding, "null", 0, 1 << 30, "places above"),
    KEEL_INT(args_t, bottom_padding, "null", 0, 1 << 30, "places below"),
    KEEL_INT(args_t, target_height, "null", 0, 1 << 30, "of the output"),
    KEEL_INT(args_t, left_padding, "null", 0, 1 << 30, "places to the left"),
    KEEL_INT(args_t, right_padding, "null", 0, 1 << 30, "places to the right"),
    KEEL_INT(args_t, target_width, "null", 0, 1 << 30, "of the output"),
    KEEL_IMAGE_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    args_t a = *(const args_t *)e->args;
    keel_shape in;
    KEEL_TRY(keel_image_in(e, a.data_format, &in));
    KEEL_TRY(complete(in.dim[0], 1, &a.top_padding, &a.bottom_padding, &a.target_height));
    KEEL_TRY(complete(in.dim[1], 1, &a.left_padding, &a.right_padding, &a.target_width));
    const keel_pad_args op = { .before = { a.top_padding, a.left_padding },
                               .behind = { a.bottom_padding, a.right_padding } };
    return keel_emit_on(e, &keel_op_pad, &op, e->in, 1, e->out);
}

KEEL_IMAGE_OPERATION(ops_image_pad_images, "PadImages", args_t, "Zeros around images.",
                     .whole = KEEL_WHOLE_KEPT)
