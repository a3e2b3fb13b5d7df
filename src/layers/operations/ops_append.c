/* Two values one after another along an axis. */
#include "layers/operations/_values.h"

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "null", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    keel_axis_args op;
    keel_value x[2];
    const args_t *a = e->args;
    if (a->axis == KEEL_INT_NULL) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    return keel_emit_on(e, &keel_op_concatenate, &op, x, 2, e->out);
}

KEEL_ARGS_OPERATION(ops_append, "Append", "numpy", 2, "Two values one after another.")
