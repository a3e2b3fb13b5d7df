/* Where the numbers are, from the smallest to the largest. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "-1", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_axis_args op;
    if (a->axis == KEEL_INT_NULL) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));
    return keel_emit_unary(e, &keel_op_argsort, &op);
}

KEEL_ARGS_OPERATION(ops_argsort, "Argsort", "numpy", 1,
                    "Where the numbers are, from the smallest to the largest.", .places = true,
                    .whole = KEEL_WHOLE_ALWAYS)
