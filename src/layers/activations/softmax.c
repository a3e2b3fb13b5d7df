/* Probabilities along one axis. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "-1", -7, 7, "which dim sums to one, counted with the batch"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    if (e->mask[0] >= 0) return keel_fail(KEEL_EUNSUP, "Softmax of masked values is not supported");
    const args_t *a = e->args;
    keel_axis_args op;
    KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));
    return keel_emit_one(e, &keel_op_softmax, &op);
}

const keel_layer keel_layer_softmax = {
    .type = { .name = "Softmax",
              .module = "keras.layers",
              .help = "Probabilities along one axis.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .emit = emit,
};
