/* Zeros around [H, W, C]. padding: n, [height, width], or [[top, bottom], [left, right]]. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    keel_ints padding;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, padding, 4, "[[1, 1], [1, 1]]", 0, 1e6,
              "n, [height, width], or [[top, bottom], [left, right]]"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int64_t *p = a->padding.at;
    const keel_zero_pad2d_args op = { .pad = { p[0], p[1], p[2], p[3] } };
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    return keel_emit_one(e, &keel_op_zero_pad2d, &op);
}

const keel_layer keel_layer_zero_padding2d = {
    .type = { KEEL_LAYER_HEAD("ZeroPadding2D", "Adds zeros around an image."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
