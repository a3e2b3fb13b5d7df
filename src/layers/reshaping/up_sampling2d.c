/* Each pixel of [H, W, C] `size` times, or what lies between pixels. */
#include "layers/preprocessing/_resize.h"
#include "layers/reshaping/_upsample.h"

typedef struct args_t {
    keel_ints size;
    int data_format, interpolation;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, size, 2, "[2, 2]", 1, 65536, "factors of height and width"),
    KEEL_DATA_FORMAT(args_t),
    KEEL_CHOICE(args_t, interpolation, "\"nearest\"", "nearest|bilinear|bicubic|lanczos3|lanczos5",
                "between pixels"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    if (a->interpolation) KEEL_TRY(keel_emit_not_whole(e, "Keras rounds what lies between pixels"));
    if (a->interpolation <= 1) return keel_emit_upsample(e, &a->size, a->interpolation == 1);
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    const int64_t height = in->shape.dim[0], width = in->shape.dim[1];
    const keel_resizing r = { .size = { height * a->size.at[0], width * a->size.at[1] },
                              .length = { height, width },
                              .method = (keel_resize_method)a->interpolation };
    return keel_emit_resizing(e, &r);
}

const keel_layer keel_layer_up_sampling2d = {
    .type = { KEEL_LAYER_HEAD("UpSampling2D", "Makes images larger."), .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
