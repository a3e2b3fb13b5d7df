/* From the smallest to the largest. */
#include "layers/operations/_operation.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    const keel_reduction *a = e->args;
    const keel_binary_args plain = { 0 };
    keel_reduce_args op = { .to = KEEL_REDUCE_MAX, .keepdims = a->keepdims };
    keel_value x[2];
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &op));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &op, e->in, 1, &x[0]));
    op.to = KEEL_REDUCE_MIN;
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &op, e->in, 1, &x[1]));
    return keel_emit_on(e, &keel_op_subtract, &plain, x, 2, e->out);
}

KEEL_REDUCTION_LAYER(ops_ptp, "Ptp", "numpy", "From the smallest to the largest.",
                     .whole = KEEL_WHOLE_KEPT)
