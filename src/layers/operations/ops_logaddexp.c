/* The logarithm of the sum of two powers of e: max(a, b) + softplus(-|a - b|). Two equal infinities
 * give their sum. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value x[2], most, off, none, sum, y;
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    KEEL_TRY(keel_emit_pair(e, &keel_op_maximum, x[0], x[1], &most));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, x[0], x[1], &off));
    KEEL_TRY(keel_emit_no_number(e, off, &none));
    KEEL_TRY(keel_emit_each(e, &keel_op_absolute, off, &y));
    KEEL_TRY(keel_emit_scaled(e, y, -1, 0, &y));
    KEEL_TRY(keel_emit_each(e, &keel_op_softplus, y, &y));
    KEEL_TRY(keel_emit_pair(e, &keel_op_plus, most, y, &y));
    KEEL_TRY(keel_emit_pair(e, &keel_op_plus, x[0], x[1], &sum));
    return keel_emit_choice(e, none, KEEL_OF_VALUE(sum), KEEL_OF_VALUE(y), e->out);
}

KEEL_PLAIN_OPERATION(ops_logaddexp, "Logaddexp", "numpy", 2,
                     "The logarithm of the sum of two powers of e.", .wide_alone = true)
