/* The larger or smaller of two numbers; where one is no number, the other. */
#ifndef KEEL_LAYERS_OPERATIONS_EITHER_H
#define KEEL_LAYERS_OPERATIONS_EITHER_H
#include "layers/operations/_values.h"

static inline keel_status emit_either(keel_emit *e, const keel_op *op)
{
    keel_value x[2], none[2], y;
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    for (int i = 0; i < 2; i++) KEEL_TRY(keel_emit_no_number(e, x[i], &none[i]));
    KEEL_TRY(keel_emit_pair(e, op, x[0], x[1], &y));
    KEEL_TRY(keel_emit_choice(e, none[1], KEEL_OF_VALUE(x[0]), KEEL_OF_VALUE(y), &y));
    return keel_emit_choice(e, none[0], KEEL_OF_VALUE(x[1]), KEEL_OF_VALUE(y), e->out);
}

#endif
