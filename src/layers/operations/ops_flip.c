/* The places of an axis from the last to the first. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "which dims, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_slice_args op = keel_slice_all(in);
    if (a->axis.count < 0) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    for (int i = 0; i < a->axis.count; i++) {
        int64_t d;
        KEEL_TRY(keel_row_axis(e, a->axis.at[i], &d));
        op.begin[d] = in->dim[d] - 1;
        op.step[d] = -1;
    }
    return keel_emit_unary(e, &keel_op_slice, &op);
}

KEEL_ARGS_OPERATION(ops_flip, "Flip", "numpy", 1,
                    "The places of an axis from the last to the first.", .whole = KEEL_WHOLE_KEPT)
