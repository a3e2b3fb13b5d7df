/* The logarithm of the sum of two powers of e: max(a, b) + softplus(-|a - b|). */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    keel_operand o[2];
    KEEL_TRY(keel_operand_at(e, 0, "x1", &o[0]));
    KEEL_TRY(keel_operand_at(e, 1, "x2", &o[1]));
    if (o[0].value < 0 || o[1].value < 0)
        return keel_fail(KEEL_EUNSUP, "it needs two values of the model");
    const keel_binary_args plain = { 0 };
    static const keel_rescaling_args minus = { .scale = -1 };
    keel_value both[2] = { o[0].value, o[1].value }, x[2], rest;
    KEEL_TRY(keel_emit_on(e, &keel_op_maximum, &plain, both, 2, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_subtract, &plain, both, 2, &rest));
    KEEL_TRY(keel_emit_on(e, &keel_op_absolute, NULL, &rest, 1, &rest));
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &minus, &rest, 1, &rest));
    KEEL_TRY(keel_emit_on(e, &keel_op_softplus, NULL, &rest, 1, &x[1]));
    return keel_emit_on(e, &keel_op_plus, &plain, x, 2, e->out);
}

const keel_layer keel_layer_ops_logaddexp = {
    .type = { KEEL_OPERATION_HEAD("Logaddexp", "numpy",
                                  "The logarithm of the sum of two powers of e.") },
    .min_inputs = 1,
    .max_inputs = 2,
    .operation = true,
    .emit = emit,
};
