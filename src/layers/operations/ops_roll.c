/* Places moved along axes, the last to the front. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints shift;
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, shift, -1, NULL, -1e15, 1e15, "by how many places"),
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "which dims, the batch is 0"),
    { 0 },
};

static keel_status moved(keel_emit *e, int64_t axis, int64_t shift, keel_value *v)
{
    keel_axis_args along;
    keel_value part[2];
    KEEL_TRY(keel_row_axis(e, axis, &along.axis));
    const int64_t n = keel_emit_in(e, 0)->shape.dim[along.axis];
    shift = (shift % n + n) % n;
    if (shift == 0) return KEEL_OK;
    KEEL_TRY(keel_emit_part(e, *v, along.axis, n - shift, shift, &part[0]));
    KEEL_TRY(keel_emit_part(e, *v, along.axis, 0, n - shift, &part[1]));
    return keel_emit_on(e, &keel_op_concatenate, &along, part, 2, v);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_value v = e->in[0];
    if (a->axis.count == 0)
        return keel_fail(KEEL_EUNSUP, "without axis it mixes the rows of a batch");
    if (a->shift.count != 1 && a->shift.count != a->axis.count)
        return keel_fail(KEEL_EARG, "%d shifts for %d axes", a->shift.count, a->axis.count);
    for (int k = 0; k < a->axis.count; k++)
        KEEL_TRY(moved(e, a->axis.at[k], a->shift.at[a->shift.count == 1 ? 0 : k], &v));
    e->out[0] = v;
    return KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_roll, "Roll", "numpy", 1, "Places moved along axes, the last to the front.",
                    .whole = KEEL_WHOLE_KEPT)
