/* Zeros before and behind the steps of [T, C]. padding: n, or [before, behind]. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    keel_ints padding;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, padding, 2, "[1, 1]", 0, 1e6, "n, or [before, behind]"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int64_t *p = a->padding.at;
    const keel_zero_pad2d_args op = { .pad = { p[0], p[1] } };
    keel_shape image;
    keel_value x, y;
    KEEL_TRY(keel_emit_as_image(e, 1, &x, &image));
    KEEL_TRY(keel_emit_on(e, &keel_op_zero_pad2d, &op, &x, 1, &y));
    return keel_emit_from_image(e, 1, y, e->out);
}

const keel_layer keel_layer_zero_padding1d = {
    .type = { KEEL_LAYER_HEAD("ZeroPadding1D", "Adds zeros before and behind the steps."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
