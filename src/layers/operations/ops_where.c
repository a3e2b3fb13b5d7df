/* One of two values, chosen by a condition. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_operand a, b;
    keel_value condition;
    KEEL_TRY(keel_value_at(e, 0, "condition", rank, &condition));
    KEEL_TRY(keel_operand_or_array(e, 1, "x1", rank, &a));
    KEEL_TRY(keel_operand_or_array(e, 2, "x2", rank, &b));
    if (!a.given || !b.given)
        return keel_fail(KEEL_EUNSUP, "it needs a condition and two operands");
    return keel_emit_choice(e, condition, a, b, e->out);
}

KEEL_PLAIN_OPERATION(ops_where, "Where", "numpy", 3, "One of two values by a condition.",
                     .whole = KEEL_WHOLE_KEPT)
