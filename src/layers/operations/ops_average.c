/* The mean over axes. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "over which dims, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_operand weights;
    keel_reduce_args op = { .to = KEEL_REDUCE_MEAN };
    KEEL_TRY(keel_operand_at(e, 1, "weights", &weights));
    if (weights.given) return keel_fail(KEEL_EUNSUP, "weights are not supported");
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &op));
    return keel_emit_unary(e, &keel_op_reduce, &op);
}

KEEL_ARGS_OPERATION(ops_average, "Average", "numpy", 1, "The mean over axes.")
