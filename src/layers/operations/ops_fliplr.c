/* The first dim of a row from the last place to the first. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    const keel_shape in = keel_emit_in(e, 0)->shape;
    keel_slice_args op = { 0 };
    if (in.rank < 1) return keel_fail(KEEL_ESHAPE, "rows of one number have no dim to turn over");
    for (int d = 0; d < in.rank; d++) {
        op.step[d] = d ? 1 : -1;
        op.begin[d] = d ? 0 : in.dim[0] - 1;
        op.count[d] = in.dim[d];
    }
    return keel_emit_unary(e, &keel_op_slice, &op);
}

KEEL_PLAIN_OPERATION(ops_fliplr, "Fliplr", "numpy", 1, "The first dim of a row turned over.")
