/* A part of images. */
#include "layers/operations/_borders.h"

typedef struct args_t {
    int64_t top_cropping, bottom_cropping, target_height;
    int64_t left_cropping, right_cropping, target_width;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, top_cropping, "null", 0, 1 << 30, "places above"),
    KEEL_INT(args_t, bottom_cropping, "null", 0, 1 << 30, "places below"),
    KEEL_INT(args_t, target_height, "null", 0, 1 << 30, "of the output"),
    KEEL_INT(args_t, left_cropping, "null", 0, 1 << 30, "places to the left"),
    KEEL_INT(args_t, right_cropping, "null", 0, 1 << 30, "places to the right"),
    KEEL_INT(args_t, target_width, "null", 0, 1 << 30, "of the output"),
    KEEL_IMAGE_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    args_t a = *(const args_t *)e->args;
    keel_shape in;
    KEEL_TRY(keel_image_in(e, a.data_format, &in));
    KEEL_TRY(complete(in.dim[0], -1, &a.top_cropping, &a.bottom_cropping, &a.target_height));
    KEEL_TRY(complete(in.dim[1], -1, &a.left_cropping, &a.right_cropping, &a.target_width));
    const keel_slice_args op = { .begin = { a.top_cropping, a.left_cropping },
                                 .step = { 1, 1, 1 },
                                 .count = { a.target_height, a.target_width, in.dim[2] } };
    return keel_emit_on(e, &keel_op_slice, &op, e->in, 1, e->out);
}

KEEL_IMAGE_OPERATION(ops_image_crop_images, "CropImages", args_t, "A part of images.",
                     .whole = KEEL_WHOLE_KEPT)
