/* sin(pi x) / (pi x), and 1 at 0. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value zero, angle, sine, y;
    KEEL_TRY(keel_emit_is(e, KEEL_EQUAL, e->in[0], 0, &zero));
    /* 1 in place of 0, so that no gradient is 0 / 0 */
    KEEL_TRY(keel_emit_choice(e, zero, KEEL_OF_NUMBER(1), KEEL_OF_VALUE(e->in[0]), &angle));
    KEEL_TRY(keel_emit_scaled(e, angle, 3.14159265358979323846, 0, &angle));
    KEEL_TRY(keel_emit_each(e, &keel_op_sin, angle, &sine));
    KEEL_TRY(keel_emit_pair(e, &keel_op_divide, sine, angle, &y));
    return keel_emit_choice(e, zero, KEEL_OF_NUMBER(1), KEEL_OF_VALUE(y), e->out);
}

KEEL_PLAIN_OPERATION(ops_sinc, "Sinc", "numpy", 1, "sin(pi x) / (pi x).")
