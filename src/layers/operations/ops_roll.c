/* Places moved along an axis, the last to the front. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints shift;
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, shift, -1, NULL, -1e15, 1e15, "by how many places"),
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "which dim, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_axis_args along;
    keel_value part[2];
    if (a->axis.count != 1 || a->shift.count != 1)
        return keel_fail(KEEL_EUNSUP, "one axis and one shift are supported");
    KEEL_TRY(keel_row_axis(e, a->axis.at[0], &along.axis));
    const int64_t n = in->dim[along.axis], shift = (a->shift.at[0] % n + n) % n;
    if (shift == 0) {
        e->out[0] = e->in[0];
        return KEEL_OK;
    }
    KEEL_TRY(keel_emit_part(e, e->in[0], along.axis, n - shift, shift, &part[0]));
    KEEL_TRY(keel_emit_part(e, e->in[0], along.axis, 0, n - shift, &part[1]));
    return keel_emit_on(e, &keel_op_concatenate, &along, part, 2, e->out);
}

KEEL_ARGS_OPERATION(ops_roll, "Roll", "numpy", 1,
                    "Places moved along an axis, the last to the front.")
