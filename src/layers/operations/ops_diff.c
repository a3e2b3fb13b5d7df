/* Differences of neighbours along an axis. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_REFUSE("n", "1", "how often"),
    KEEL_INT(args_t, axis, "-1", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_binary_args plain = { 0 };
    keel_value x[2];
    int64_t axis;
    KEEL_TRY(keel_row_axis(e, a->axis, &axis));
    const int64_t n = keel_emit_in(e, 0)->shape.dim[axis] - 1;
    KEEL_TRY(keel_emit_part(e, e->in[0], axis, 0, n, &x[1]));
    KEEL_TRY(keel_emit_part(e, e->in[0], axis, 1, n, &x[0]));
    return keel_emit_on(e, &keel_op_subtract, &plain, x, 2, e->out);
}

KEEL_ARGS_OPERATION(ops_diff, "Diff", "numpy", 1, "Differences of neighbours along an axis.")
