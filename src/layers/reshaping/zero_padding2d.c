/* Zeros around [H, W, C]. padding: n, [height, width], or [[top, bottom], [left, right]]. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    keel_ints padding;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, padding, 0, "[1, 1]", 0, 1e6,
              "n, [height, width], or [[top, bottom], [left, right]]"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status pads(const args_t *a, int64_t pad[4])
{
    const int64_t *at = a->padding.at;
    const int n = a->padding.count;
    if (n != 1 && n != 2 && n != 4)
        return keel_fail(KEEL_EARG, "padding: expected 1, 2 or 2 pairs of numbers, got %d", n);
    for (int i = 0; i < 4; i++) pad[i] = n == 4 ? at[i] : n == 2 ? at[i / 2] : at[0];
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_zero_pad2d_args op;
    const keel_spec *in;
    KEEL_TRY(keel_channels_last(a->data_format));
    KEEL_TRY(keel_emit_image(e, &in));
    KEEL_TRY(pads(a, op.pad));
    return keel_emit_op(e, "zero_pad2d", &op, e->in, 1, NULL, NULL, 0, &e->out);
}

static keel_status to_config(const void *args, json_t *config)
{
    int64_t p[4];
    KEEL_TRY(pads(args, p));
    json_t *pairs = json_pack("[[I,I],[I,I]]", (json_int_t)p[0], (json_int_t)p[1], (json_int_t)p[2],
                              (json_int_t)p[3]);
    if (json_object_set_new(config, "padding", pairs))
        return keel_fail(KEEL_ENOMEM, "out of memory writing a layer");
    return KEEL_OK;
}

const keel_layer keel_layer_zero_padding2d = {
    .type = { .name = "ZeroPadding2D",
              .module = "keras.layers",
              .help = "Adds zeros around an image.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
    .to_config = to_config,
};
