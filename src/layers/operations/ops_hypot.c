/* The length of a vector of two: most sqrt(1 + (least / most)^2), because the square of a number
 * may be beyond its type. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value o[2], most, least, none, by, y;
    KEEL_TRY(keel_two_values(e, "x1", "x2", o));
    for (int i = 0; i < 2; i++) KEEL_TRY(keel_emit_each(e, &keel_op_absolute, o[i], &o[i]));
    KEEL_TRY(keel_emit_pair(e, &keel_op_maximum, o[0], o[1], &most));
    KEEL_TRY(keel_emit_pair(e, &keel_op_minimum, o[0], o[1], &least));
    KEEL_TRY(keel_emit_is(e, KEEL_EQUAL, most, 0, &none));
    KEEL_TRY(keel_emit_choice(e, none, KEEL_OF_NUMBER(1), KEEL_OF_VALUE(most), &by));
    KEEL_TRY(keel_emit_pair(e, &keel_op_divide, least, by, &y));
    KEEL_TRY(keel_emit_each(e, &keel_op_square, y, &y));
    KEEL_TRY(keel_emit_with(e, &keel_op_plus, y, 1, &y));
    KEEL_TRY(keel_emit_each(e, &keel_op_sqrt, y, &y));
    return keel_emit_pair(e, &keel_op_multiply, most, y, e->out);
}

KEEL_PLAIN_OPERATION(ops_hypot, "Hypot", "numpy", 2, "The length of a vector of two.",
                     .wide_alone = true)
