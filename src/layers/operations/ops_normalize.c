/* Vectors of length 1 along an axis. */
#include "layers/operations/_operation.h"
#include <math.h>

typedef struct args_t {
    int64_t axis;
    int64_t order;
    double epsilon;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "-1", -7, 7, "along which dim, the batch is 0"),
    KEEL_INT(args_t, order, "2", 0, 0, "which norm"),
    KEEL_FLOAT(args_t, epsilon, "null", 0, 0, "no length is below it"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_binary_args plain = { 0 };
    keel_binary_args least = { .constant = isnan(a->epsilon) ? 1e-7 : a->epsilon };
    keel_reduce_args op = { .to = KEEL_REDUCE_SUM, .keepdims = true };
    keel_value x[2] = { e->in[0], -1 };
    int64_t axis;
    KEEL_TRY(keel_row_axis(e, a->axis, &axis));
    op.over[axis] = true;
    if (a->order != 1 && a->order != 2)
        return keel_fail(KEEL_EUNSUP, "order %lld is not supported: 1 and 2 are",
                         (long long)a->order);
    const keel_op *size = a->order == 2 ? &keel_op_square : &keel_op_absolute;
    KEEL_TRY(keel_emit_on(e, size, NULL, e->in, 1, &x[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &op, &x[1], 1, &x[1]));
    if (a->order == 2) least.constant *= least.constant; /* of the square */
    KEEL_TRY(keel_emit_on(e, &keel_op_maximum, &least, &x[1], 1, &x[1]));
    if (a->order == 2) KEEL_TRY(keel_emit_on(e, &keel_op_sqrt, NULL, &x[1], 1, &x[1]));
    return keel_emit_on(e, &keel_op_divide, &plain, x, 2, e->out);
}

KEEL_ARGS_OPERATION(ops_normalize, "Normalize", "nn", 1, "Vectors of length 1 along an axis.")
