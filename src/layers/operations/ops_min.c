/* The smallest over axes. */
#include "layers/operations/_extreme.h"

static const keel_field fields[] = { KEEL_EXTREME_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_emit_extreme(e, KEEL_REDUCE_MIN, &keel_op_minimum);
}

const keel_layer keel_layer_ops_min = {
    .type = { KEEL_OPERATION_HEAD("Min", "numpy", "The smallest over axes."),
              .args_size = sizeof(keel_extreme), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .operation = true,
    .emit = emit,
};
