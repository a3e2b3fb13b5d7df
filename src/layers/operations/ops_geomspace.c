/* Numbers between two whose quotients are equal; both must have the sign of the first. */
#include "layers/operations/_space.h"
#include "ops/rounded.h"

static const keel_field fields[] = { KEEL_SPACE_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    static const keel_rounded_args sign_of = { .to = KEEL_SIGN };
    keel_value x[2], sign, y;
    int64_t place;
    KEEL_TRY(keel_two_values(e, "start", "stop", x));
    KEEL_TRY(keel_new_axis(e, ((const keel_space *)e->args)->axis, &place));
    KEEL_TRY(keel_emit_on(e, &keel_op_rounded, &sign_of, &x[0], 1, &sign));
    const keel_shape as = keel_shape_with_one(*keel_value_shape(e, sign), place);
    KEEL_TRY(keel_emit_view(e, &as, sign, &sign));
    for (int i = 0; i < 2; i++) {
        KEEL_TRY(keel_emit_each(e, &keel_op_absolute, x[i], &x[i]));
        KEEL_TRY(keel_emit_each(e, &keel_op_log, x[i], &x[i]));
    }
    KEEL_TRY(emit_space(e, x, &y));
    KEEL_TRY(keel_emit_each(e, &keel_op_exponential, y, &y));
    return keel_emit_pair(e, &keel_op_multiply, y, sign, e->out);
}

KEEL_SPACE_OPERATION(ops_geomspace, "Geomspace", "Numbers between two with equal quotients.")
