/* The places of an axis as values of their own. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t num;
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, num, "null", 1, 1e9, "how many there are; null: as many"),
    KEEL_INT(args_t, axis, "0", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    int64_t axis;
    KEEL_TRY(keel_row_axis(e, a->axis, &axis));
    const keel_shape in = keel_emit_in(e, 0)->shape, one = keel_shape_without(in, axis);
    const int64_t n = in.dim[axis];
    if (a->num != KEEL_INT_NULL && a->num != n)
        return keel_fail(KEEL_ESHAPE, "num is %lld, where axis %lld has %lld places",
                         (long long)a->num, (long long)a->axis, (long long)n);
    KEEL_TRY(keel_emit_outputs(e, (int)n));
    for (int64_t i = 0; i < n; i++) {
        keel_value place;
        KEEL_TRY(keel_emit_part(e, e->in[0], axis, i, 1, &place));
        KEEL_TRY(keel_emit_view(e, &one, place, &e->out[i]));
    }
    return KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_unstack, "Unstack", "core", 1,
                    "The places of an axis as values of their own.", .whole = KEEL_WHOLE_KEPT)
