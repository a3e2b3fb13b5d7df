/* The largest of each window over [H, W, C]. strides default to pool_size. */
#include "layers/pooling/_pool.h"

static const keel_field fields[] = { KEEL_POOL_FIELDS(2, "[2, 2]"), { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_emit_pool(e, 2, &keel_op_max_pool2d);
}

const keel_layer keel_layer_max_pooling2d = {
    .type = { KEEL_LAYER_HEAD("MaxPooling2D", "The largest value of each window."),
              .args_size = sizeof(keel_pool), .fields = fields },
    .aliases = "MaxPool2D",
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
