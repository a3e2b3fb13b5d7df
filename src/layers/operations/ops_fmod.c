/* The remainder of a quotient, with the sign of the dividend. */
#include "layers/operations/_values.h"
#include "ops/rounded.h"

static keel_status emit(keel_emit *e)
{
    static const keel_rounded_args sign_of = { .to = KEEL_SIGN };
    keel_value x[2], sign, size[2], y;
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    KEEL_TRY(keel_emit_on(e, &keel_op_rounded, &sign_of, &x[0], 1, &sign));
    for (int i = 0; i < 2; i++) KEEL_TRY(keel_emit_each(e, &keel_op_absolute, x[i], &size[i]));
    KEEL_TRY(keel_emit_pair(e, &keel_op_mod, size[0], size[1], &y));
    return keel_emit_pair(e, &keel_op_multiply, sign, y, e->out);
}

KEEL_PLAIN_OPERATION(ops_fmod, "Fmod", "numpy", 2, "The remainder, with the dividend's sign.",
                     .wide_alone = true, .whole = KEEL_WHOLE_KEPT)
