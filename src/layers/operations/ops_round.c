/* The nearest whole numbers, of halves the even ones. */
#include "layers/operations/_operation.h"
#include "ops/rounded.h"

static const keel_field fields[] = {
    KEEL_REFUSE("decimals", "0", "digits behind the point"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_rounded_args how = { .to = KEEL_NEAREST };
    return keel_emit_unary(e, &keel_op_rounded, &how);
}

const keel_layer keel_layer_ops_round = {
    .type = { KEEL_OPERATION_HEAD("Round", "numpy",
                                  "The nearest whole numbers, of halves the even ones."),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
