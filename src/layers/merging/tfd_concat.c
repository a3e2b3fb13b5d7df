/* Its inputs one after another along one axis. Keras: the last layer of a FeatureSpace. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, NULL, -7, 7, "along which dim, counted with the batch"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    keel_axis_args op;
    KEEL_TRY(keel_row_axis(e, ((const args_t *)e->args)->axis, &op.axis));
    return keel_emit_one(e, &keel_op_concatenate, &op);
}

const keel_layer keel_layer_tfd_concat = {
    .type = { .name = "TFDConcat",
              .module = "keras.src.layers.preprocessing.feature_space",
              .help = "Puts the encoded features of a FeatureSpace one after another.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = -1,
    .emit = emit,
};
