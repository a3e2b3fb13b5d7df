/* The length of vectors. */
#include "layers/operations/_operation.h"
#include <math.h>

typedef struct args_t {
    double ord;
    keel_ints axis;
    bool keepdims;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, ord, "null", 0, 0, "which norm: 1, 2 or null, which is 2"),
    KEEL_INTS(args_t, axis, 0, "null", -7, 7, "over which dims, the batch is 0"),
    KEEL_BOOL(args_t, keepdims, "false", "keep them as dims of 1"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_reduce_args op = { .to = KEEL_REDUCE_SUM, .keepdims = a->keepdims };
    keel_value x;
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &op));
    if (a->axis.count != 1)
        return keel_fail(KEEL_EUNSUP, "the norm of vectors, along one axis, is supported");
    const bool euclidean = isnan(a->ord) || a->ord == 2;
    if (!euclidean && a->ord != 1)
        return keel_fail(KEEL_EUNSUP, "ord %g is not supported: 1, 2 and null are", a->ord);
    const keel_op *size = euclidean ? &keel_op_square : &keel_op_absolute;
    KEEL_TRY(keel_emit_on(e, size, NULL, e->in, 1, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &op, &x, 1, &x));
    if (euclidean) KEEL_TRY(keel_emit_on(e, &keel_op_sqrt, NULL, &x, 1, &x));
    e->out[0] = x;
    return KEEL_OK;
}

const keel_layer keel_layer_ops_norm = {
    .type = { KEEL_OPERATION_HEAD("Norm", "linalg", "The length of vectors."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
