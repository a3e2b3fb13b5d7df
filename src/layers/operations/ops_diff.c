/* Differences of neighbours along an axis. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t n, axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, n, "1", 0, 1024, "how often"),
    KEEL_INT(args_t, axis, "-1", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_binary_args plain = { 0 };
    keel_value x[2], y = e->in[0];
    int64_t axis;
    KEEL_TRY(keel_row_axis(e, a->axis, &axis));
    const int64_t size = keel_emit_in(e, 0)->shape.dim[axis];
    if (a->n >= size)
        return keel_fail(KEEL_EUNSUP, "n %lld leaves nothing of %lld places", (long long)a->n,
                         (long long)size);
    for (int64_t left = size - 1; left >= size - a->n; left--) {
        KEEL_TRY(keel_emit_part(e, y, axis, 0, left, &x[1]));
        KEEL_TRY(keel_emit_part(e, y, axis, 1, left, &x[0]));
        KEEL_TRY(keel_emit_on(e, &keel_op_subtract, &plain, x, 2, &y));
    }
    e->out[0] = y;
    return KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_diff, "Diff", "numpy", 1, "Differences of neighbours along an axis.",
                    .whole = KEEL_WHOLE_KEPT)
