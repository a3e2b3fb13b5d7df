/* The places of an axis that a second value names. */
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
    const args_t *a = e->args;
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_axis_args op;
    keel_value x[2];
    if (a->axis == KEEL_INT_NULL) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_value_at(e, 0, "x", rank, &x[0]));
    KEEL_TRY(keel_value_at(e, 1, "indices", rank, &x[1]));
    KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));
    const bool alike = keel_value_shape(e, x[0])->rank == keel_value_shape(e, x[1])->rank;
    for (int d = 0; d < rank && alike; d++) /* of the other dims, one of 1 goes with any number */
        if (d != op.axis) KEEL_TRY(keel_emit_alike(e, d, x));
    return keel_emit_on(e, &keel_op_take_along, &op, x, 2, e->out);
}

KEEL_ARGS_OPERATION(ops_take_along_axis, "TakeAlongAxis", "numpy", 2,
                    "The places of an axis that a second value names.", .places = true,
                    .whole = KEEL_WHOLE_KEPT)
