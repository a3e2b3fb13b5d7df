/* Hue, saturation and value of colours. */
#include "layers/operations/_image.h"
#include "ops/hsv.h"

typedef struct args_t {
    int data_format;
} args_t;

static const keel_field fields[] = { KEEL_IMAGE_FORMAT(args_t), { 0 } };

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_hsv_args op = { .to_rgb = false };
    keel_shape in;
    KEEL_TRY(keel_image_in(e, a->data_format, &in));
    return keel_emit_unary(e, &keel_op_hsv, &op);
}

KEEL_IMAGE_OPERATION(ops_image_rgb_to_hsv, "RGBToHSV", args_t,
                     "Hue, saturation and value of colours.")
