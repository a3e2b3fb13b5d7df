/* The length of a vector of two. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    keel_operand o[2];
    KEEL_TRY(keel_operand_at(e, 0, "x1", &o[0]));
    KEEL_TRY(keel_operand_at(e, 1, "x2", &o[1]));
    if (o[0].value < 0 || o[1].value < 0)
        return keel_fail(KEEL_EUNSUP, "it needs two values of the model");
    const keel_binary_args plain = { 0 };
    keel_value x[2];
    for (int i = 0; i < 2; i++)
        KEEL_TRY(keel_emit_on(e, &keel_op_square, NULL, &o[i].value, 1, &x[i]));
    KEEL_TRY(keel_emit_on(e, &keel_op_plus, &plain, x, 2, &x[0]));
    return keel_emit_on(e, &keel_op_sqrt, NULL, &x[0], 1, e->out);
}

const keel_layer keel_layer_ops_hypot = {
    .type = { KEEL_OPERATION_HEAD("Hypot", "numpy", "The length of a vector of two.") },
    .min_inputs = 1,
    .max_inputs = 2,
    .operation = true,
    .emit = emit,
};
