/* Images [H, W, C] in another height and width, stretched, cropped or padded to that aspect ratio.
 */
#include "layers/preprocessing/_resize.h"

typedef struct args_t {
    int64_t height, width;
    int interpolation, fill_mode, data_format;
    bool crop_to_aspect_ratio, pad_to_aspect_ratio, antialias;
    double fill_value;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, height, NULL, 1, 1 << 24, "of the output"),
    KEEL_INT(args_t, width, NULL, 1, 1 << 24, "of the output"),
    KEEL_CHOICE(args_t, interpolation, "\"bilinear\"", KEEL_RESIZE_METHODS, "between pixels"),
    KEEL_BOOL(args_t, crop_to_aspect_ratio, "false", "leave out what is too wide or too high"),
    KEEL_BOOL(args_t, pad_to_aspect_ratio, "false", "add borders instead"),
    KEEL_CHOICE(args_t, fill_mode, "\"constant\"", "constant", "what borders are"),
    KEEL_FLOAT(args_t, fill_value, "0.0", 0, 0, "what fill_mode constant fills with"),
    KEEL_BOOL(args_t, antialias, "false", "see all of an image that becomes smaller"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    const args_t *a = args;
    if (a->crop_to_aspect_ratio && a->pad_to_aspect_ratio)
        return keel_fail(KEEL_EARG, "only one of crop_to_aspect_ratio and pad_to_aspect_ratio can "
                                    "be true");
    return KEEL_OK;
}

/* See the image with borders on both sides, as many as make its shape that of the output. Keras
 * rounds each border down, so that its shape may be off by one. */
static void pad(keel_resizing *r, int64_t height, int64_t width)
{
    const int64_t have[2] = { height, width };
    const int64_t want[2] = { width * r->size[0] / r->size[1], height * r->size[1] / r->size[0] };
    for (int d = 0; d < 2; d++) {
        const int64_t border = want[d] > have[d] ? (want[d] - have[d]) / 2 : 0;
        r->begin[d] = -border;
        r->length[d] = have[d] + 2 * border;
    }
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in;
    KEEL_TRY(keel_channels_last(a->data_format));
    KEEL_TRY(keel_emit_image(e, &in));
    const int64_t height = in->shape.dim[0], width = in->shape.dim[1];
    keel_resizing r = { .size = { a->height, a->width },
                        .length = { height, width },
                        .method = (keel_resize_method)a->interpolation,
                        .antialias = a->antialias,
                        .fill = a->fill_value };
    if (a->crop_to_aspect_ratio) keel_resizing_crop(&r, height, width);
    if (a->pad_to_aspect_ratio) pad(&r, height, width);
    return keel_emit_resizing(e, &r);
}

const keel_layer keel_layer_resizing = {
    .type = { .name = "Resizing",
              .module = "keras.layers",
              .help = "Makes images of another height and width.",
              .args_size = sizeof(args_t),
              .fields = fields,
              .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
