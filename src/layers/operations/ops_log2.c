/* The logarithm to base 2 of each number. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    static const keel_rescaling_args factor = { .scale = 1.4426950408889634 };
    keel_value x;
    KEEL_TRY(keel_emit_on(e, &keel_op_log, NULL, e->in, 1, &x));
    return keel_emit_on(e, &keel_op_rescaling, &factor, &x, 1, e->out);
}

const keel_layer keel_layer_ops_log2 = {
    .type = { KEEL_OPERATION_HEAD("Log2", "numpy", "The logarithm to base 2 of each number.") },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
