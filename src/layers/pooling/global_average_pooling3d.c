/* The mean of each channel of [D, H, W, C]: [C], or [1, 1, 1, C] with keepdims. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    int data_format;
    bool keepdims;
} args_t;

static const keel_field fields[] = {
    KEEL_DATA_FORMAT(args_t),
    KEEL_BOOL(args_t, keepdims, "false", "keep depth, height and width as dims of 1"),
    { 0 },
};

/* As an image [D H, W, C], whose pooling has fast kernels. */
static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_global_pool2d_args op = { 0 };
    keel_shape in;
    keel_value x;
    KEEL_TRY(keel_emit_as_image(e, 3, &x, &in));
    const keel_shape image = KEEL_SHAPE(in.dim[0] * in.dim[1], in.dim[2], in.dim[3]);
    const keel_shape kept = KEEL_SHAPE(1, 1, 1, in.dim[3]);
    KEEL_TRY(keel_emit_view(e, &image, x, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_global_average_pool2d, &op, &x, 1, e->out));
    return a->keepdims ? keel_emit_view(e, &kept, e->out[0], e->out) : KEEL_OK;
}

const keel_layer keel_layer_global_average_pooling3d = {
    .type = { KEEL_LAYER_HEAD("GlobalAveragePooling3D",
                              "The mean of each channel over the whole volume."),
              .args_size = sizeof(args_t), .fields = fields },
    .aliases = "GlobalAvgPool3D",
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_TAKEN,
    .emit = emit,
};
