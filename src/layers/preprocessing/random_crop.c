/* In training a part of each image [H, W, C] at a random place; Keras draws one place for a whole
 * batch. In inference, and of an image that is not larger, the largest part with the aspect ratio
 * of the output, as Keras documents it. Keras 3.15 leaves images whole in inference, against the
 * shape that it announces. */
#include "layers/preprocessing/_random.h"
#include "layers/preprocessing/_resize.h"

typedef struct args_t {
    int64_t height, width;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, height, NULL, 1, 1 << 24, "of the output"),
    KEEL_INT(args_t, width, NULL, 1, 1 << 24, "of the output"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    const int64_t have[2] = { in->shape.dim[0], in->shape.dim[1] };
    if (e->training && have[0] > a->height && have[1] > a->width) {
        const keel_warp_args op = { .kind = KEEL_WARP_CROP,
                                    .range = { { 0, 1 }, { 0, 1 } },
                                    .size = { a->height, a->width },
                                    .nearest = true };
        return keel_emit_warp(e, &op, NULL);
    }
    keel_resizing r = { .size = { a->height, a->width }, .method = KEEL_RESIZE_BILINEAR };
    keel_resizing_crop(&r, have[0], have[1]);
    /* In training Keras takes as much as the output has from there on, if it is there. */
    for (int d = 0; e->training && d < 2; d++)
        r.length[d] = r.size[d] < have[d] - r.begin[d] ? r.size[d] : have[d] - r.begin[d];
    return keel_emit_resizing(e, &r);
}

const keel_layer keel_layer_random_crop = {
    .type = { KEEL_LAYER_HEAD("RandomCrop", "Crops images by chance while training."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
