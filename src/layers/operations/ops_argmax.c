/* Where the largest is. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t axis;
    bool keepdims;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "null", -7, 7, "along which dim, the batch is 0"),
    KEEL_BOOL(args_t, keepdims, "false", "keep them as dims of 1"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_axis_args op;
    keel_value y = e->in[0];
    if (a->axis == KEEL_INT_NULL) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));
    KEEL_TRY(keel_emit_on(e, &keel_op_argmax, &op, &y, 1, &y));
    if (!a->keepdims) {
        e->out[0] = y;
        return KEEL_OK;
    }
    keel_shape one = keel_emit_in(e, 0)->shape;
    one.dim[op.axis] = 1;
    return keel_emit_view(e, &one, y, e->out);
}

const keel_layer keel_layer_ops_argmax = {
    .type = { KEEL_OPERATION_HEAD("Argmax", "numpy", "Where the largest is."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
