/* A new dim of 1. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, NULL, -7, 7, "where, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_reshape_args op = { 0 };
    int64_t place = 0;
    if (a->axis.count != 1) return keel_fail(KEEL_EUNSUP, "axis: only one new dim is supported");
    KEEL_TRY(keel_new_axis(e, a->axis.at[0], &place));
    op.shape = keel_shape_with_one(keel_emit_in(e, 0)->shape, place);
    return keel_emit_unary(e, &keel_op_reshape, &op);
}

KEEL_ARGS_OPERATION(ops_expand_dims, "ExpandDims", "numpy", 1, "A new dim of 1.")
