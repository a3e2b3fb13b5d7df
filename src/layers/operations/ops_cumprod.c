/* Products of the places up to each one. */
#include "layers/operations/_cast.h"

typedef struct args_t {
    int64_t axis;
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "null", -7, 7, "along which dim, the batch is 0"),
    KEEL_STRING(args_t, dtype, "null", "of the numbers before they are multiplied; null: theirs"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_axis_args op;
    keel_value x;
    if (a->axis == KEEL_INT_NULL) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));
    KEEL_TRY(keel_emit_cast(e, a->dtype, false, e->in[0], &x));
    return keel_emit_on(e, &keel_op_cumprod, &op, &x, 1, e->out);
}

KEEL_ARGS_OPERATION(ops_cumprod, "Cumprod", "numpy", 1, "Products of the places up to each one.",
                    .whole = KEEL_WHOLE_KEPT)
