/* The logarithm of the sum of two powers of e: max(a, b) + softplus(-|a - b|). */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value both[2];
    KEEL_TRY(keel_two_values(e, "x1", "x2", both));
    const keel_binary_args plain = { 0 };
    static const keel_rescaling_args minus = { .scale = -1 };
    keel_value x[2], rest;
    KEEL_TRY(keel_emit_on(e, &keel_op_maximum, &plain, both, 2, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_subtract, &plain, both, 2, &rest));
    KEEL_TRY(keel_emit_on(e, &keel_op_absolute, NULL, &rest, 1, &rest));
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &minus, &rest, 1, &rest));
    KEEL_TRY(keel_emit_on(e, &keel_op_softplus, NULL, &rest, 1, &x[1]));
    return keel_emit_on(e, &keel_op_plus, &plain, x, 2, e->out);
}

KEEL_PLAIN_OPERATION(ops_logaddexp, "Logaddexp", "numpy", 2,
                     "The logarithm of the sum of two powers of e.", .wide_alone = true)
