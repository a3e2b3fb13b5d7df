/* x1 times 2 to the power of x2, a whole number, so no gradient flows to it. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    const keel_binary_args two = { .left = true, .constant = 2 };
    keel_value x[2], factor, alike, y;
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    KEEL_TRY(keel_emit_each(e, &keel_op_stop_gradient, x[1], &factor));
    KEEL_TRY(keel_emit_on(e, &keel_op_power, &two, &factor, 1, &factor));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x[0], factor, &y));
    /* 0 and the infinities, which are their own double, stay as they are */
    KEEL_TRY(keel_emit_scaled(e, x[0], 2, 0, &alike));
    KEEL_TRY(keel_emit_compared(e, KEEL_EQUAL, x[0], alike, &alike));
    return keel_emit_choice(e, alike, KEEL_OF_VALUE(x[0]), KEEL_OF_VALUE(y), e->out);
}

KEEL_PLAIN_OPERATION(ops_ldexp, "Ldexp", "numpy", 2, "A number times a power of 2.")
