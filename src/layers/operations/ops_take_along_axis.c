/* The places of an axis that a second value names. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "null", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_axis_args op;
    keel_operand x[2];
    if (a->axis == KEEL_INT_NULL) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_operand_at(e, 0, "x", &x[0]));
    KEEL_TRY(keel_operand_at(e, 1, "indices", &x[1]));
    if (x[0].value < 0 || x[1].value < 0)
        return keel_fail(KEEL_EUNSUP, "it needs a value and indices of the model");
    KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));
    return keel_emit_on(e, &keel_op_take_along, &op, (keel_value[]){ x[0].value, x[1].value }, 2,
                        e->out);
}

KEEL_ARGS_OPERATION(ops_take_along_axis, "TakeAlongAxis", "numpy", 2,
                    "The places of an axis that a second value names.")
