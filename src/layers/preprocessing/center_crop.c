/* The middle of images [H, W, C]. Of a smaller image, the largest part with the aspect ratio of the
 * output is enlarged. */
#include "layers/preprocessing/_resize.h"

typedef struct args_t {
    int64_t height, width;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, height, NULL, 1, 1 << 24, "of the output"),
    KEEL_INT(args_t, width, NULL, 1, 1 << 24, "of the output"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    const int64_t height = in->shape.dim[0], width = in->shape.dim[1];
    keel_resizing r = { .size = { a->height, a->width },
                        .begin = { (height - a->height) / 2, (width - a->width) / 2 },
                        .length = { a->height, a->width },
                        .method = KEEL_RESIZE_BILINEAR };
    if (height < a->height || width < a->width) keel_resizing_crop(&r, height, width);
    return keel_emit_resizing(e, &r);
}

const keel_layer keel_layer_center_crop = {
    .type = { KEEL_LAYER_HEAD("CenterCrop", "Crops images to their middle."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
