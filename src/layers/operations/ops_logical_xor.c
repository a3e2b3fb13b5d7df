/* True where one of the two is. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    static const keel_compare_args is = { .is = KEEL_NOT_EQUAL };
    keel_operand x[2];
    keel_value truth[2];
    KEEL_TRY(keel_operand_at(e, 0, "x1", &x[0]));
    KEEL_TRY(keel_operand_at(e, 1, "x2", &x[1]));
    if (x[0].value < 0 || x[1].value < 0)
        return keel_fail(KEEL_EUNSUP, "it needs two values of the model");
    for (int i = 0; i < 2; i++)
        KEEL_TRY(keel_emit_on(e, &keel_op_compare, &is, &x[i].value, 1, &truth[i]));
    return keel_emit_on(e, &keel_op_compare, &is, truth, 2, e->out);
}

const keel_layer keel_layer_ops_logical_xor = {
    .type = { KEEL_OPERATION_HEAD("LogicalXor", "numpy", "True where one of the two is.") },
    .min_inputs = 1,
    .max_inputs = 2,
    .operation = true,
    .emit = emit,
};
