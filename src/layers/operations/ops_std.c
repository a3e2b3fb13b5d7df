/* The root of the mean square of what is off the mean. */
#include "layers/operations/_moments.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    const keel_reduction *a = e->args;
    keel_value var;
    KEEL_TRY(emit_moments(e, &a->axis, a->keepdims, NULL, &var));
    return keel_emit_on(e, &keel_op_sqrt, NULL, &var, 1, e->out);
}

const keel_layer keel_layer_ops_std = {
    .type = { KEEL_OPERATION_HEAD("Std", "numpy",
                                  "The root of the mean square of what is off the mean."),
              .args_size = sizeof(keel_reduction), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
