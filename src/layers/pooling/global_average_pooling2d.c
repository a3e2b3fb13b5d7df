/* The mean of each channel of [H, W, C]: [C], or [1, 1, C] with keepdims. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    int data_format;
    bool keepdims;
} args_t;

static const keel_field fields[] = {
    KEEL_DATA_FORMAT(args_t),
    KEEL_BOOL(args_t, keepdims, "false", "keep height and width as dims of 1"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_global_pool2d_args op = { .keepdims = a->keepdims };
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    return keel_emit_one(e, &keel_op_global_average_pool2d, &op);
}

const keel_layer keel_layer_global_average_pooling2d = {
    .type = { KEEL_LAYER_HEAD("GlobalAveragePooling2D",
                              "The mean of each channel over the whole image."),
              .args_size = sizeof(args_t), .fields = fields },
    .aliases = "GlobalAvgPool2D",
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_TAKEN,
    .emit = emit,
};
