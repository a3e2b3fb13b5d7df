/* The mean of each window over [H, W, C]; padding does not count. strides default to pool_size. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    keel_ints pool_size, strides;
    int padding, data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, pool_size, 2, NULL, 1, 65536, "height and width of the window"),
    KEEL_INTS(args_t, strides, 2, "null", 1, 65536, "steps of the window; null: pool_size"),
    KEEL_CHOICE(args_t, padding, "\"valid\"", "valid|same", "let windows hang over, or not"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_ints *strides = a->strides.count < 0 ? &a->pool_size : &a->strides;
    const keel_spec *in;
    KEEL_TRY(keel_channels_last(a->data_format));
    KEEL_TRY(keel_emit_image(e, &in));
    keel_pool2d_args op = { .pool = { a->pool_size.at[0], a->pool_size.at[1] },
                            .strides = { strides->at[0], strides->at[1] } };
    keel_same_padding(&in->shape, a->padding == 1, &a->pool_size, strides, NULL, op.pad);
    return keel_emit_op(e, "average_pool2d", &op, e->in, 1, NULL, NULL, 0, &e->out);
}

const keel_layer keel_layer_average_pooling2d = {
    .type = { .name = "AveragePooling2D",
              .module = "keras.layers",
              .help = "The mean value of each window.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
