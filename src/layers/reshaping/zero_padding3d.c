/* Zeros around [D, H, W, C]. padding: n, [depth, height, width], or a pair for each. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    keel_ints padding;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, padding, 6, "[[1, 1], [1, 1], [1, 1]]", 0, 1e6,
              "n, [depth, height, width], or a pair for each"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

/* The width of an image [D H, W, C], then depth and height of one [D, H, W C]. */
static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int64_t *p = a->padding.at;
    const keel_zero_pad2d_args width = { .pad = { 0, 0, p[4], p[5] } };
    const keel_zero_pad2d_args others = { .pad = { p[0], p[1], p[2], p[3] } };
    keel_shape in;
    keel_value x;
    KEEL_TRY(keel_emit_as_image(e, 3, &x, &in));
    const keel_shape lines = KEEL_SHAPE(in.dim[0] * in.dim[1], in.dim[2], in.dim[3]);
    KEEL_TRY(keel_emit_view(e, &lines, x, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_zero_pad2d, &width, &x, 1, &x));
    const int64_t wide = in.dim[2] + p[4] + p[5];
    const keel_shape planes = KEEL_SHAPE(in.dim[0], in.dim[1], wide * in.dim[3]);
    KEEL_TRY(keel_emit_view(e, &planes, x, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_zero_pad2d, &others, &x, 1, &x));
    const keel_shape out =
        KEEL_SHAPE(in.dim[0] + p[0] + p[1], in.dim[1] + p[2] + p[3], wide, in.dim[3]);
    return keel_emit_view(e, &out, x, e->out);
}

const keel_layer keel_layer_zero_padding3d = {
    .type = { KEEL_LAYER_HEAD("ZeroPadding3D", "Adds zeros around a volume."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
