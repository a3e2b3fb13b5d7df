/* The root of the mean square of what is off the mean. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints axis;
    bool keepdims;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, 0, "null", -7, 7, "over which dims, the batch is 0"),
    KEEL_BOOL(args_t, keepdims, "false", "keep them as dims of 1"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_binary_args plain = { 0 };
    keel_reduce_args mean = { .to = KEEL_REDUCE_MEAN, .keepdims = true };
    keel_value x[2] = { e->in[0], -1 };
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &mean));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &mean, e->in, 1, &x[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_subtract, &plain, x, 2, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_square, NULL, &x[0], 1, &x[0]));
    mean.keepdims = a->keepdims;
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &mean, &x[0], 1, &x[0]));
    return keel_emit_on(e, &keel_op_sqrt, NULL, &x[0], 1, e->out);
}

const keel_layer keel_layer_ops_std = {
    .type = { KEEL_OPERATION_HEAD("Std", "numpy",
                                  "The root of the mean square of what is off the mean."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
