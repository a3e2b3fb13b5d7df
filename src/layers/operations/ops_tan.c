/* The tangent of each number. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    const keel_binary_args plain = { 0 };
    keel_value x[2];
    KEEL_TRY(keel_emit_on(e, &keel_op_sin, NULL, e->in, 1, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_cos, NULL, e->in, 1, &x[1]));
    return keel_emit_on(e, &keel_op_divide, &plain, x, 2, e->out);
}

const keel_layer keel_layer_ops_tan = {
    .type = { KEEL_OPERATION_HEAD("Tan", "numpy", "The tangent of each number.") },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
