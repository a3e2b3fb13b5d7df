/* 0 below 0, 1 above it; at 0 the second operand. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value x[2], below, above, y;
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    KEEL_TRY(keel_emit_is(e, KEEL_LESS, x[0], 0, &below));
    KEEL_TRY(keel_emit_is(e, KEEL_GREATER, x[0], 0, &above));
    KEEL_TRY(keel_emit_choice(e, above, KEEL_OF_NUMBER(1), KEEL_OF_VALUE(x[1]), &y));
    return keel_emit_choice(e, below, KEEL_OF_NUMBER(0), KEEL_OF_VALUE(y), e->out);
}

KEEL_PLAIN_OPERATION(ops_heaviside, "Heaviside", "numpy", 2, "0 below 0, 1 above it.",
                     .wide_alone = true)
