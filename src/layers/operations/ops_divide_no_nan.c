/* Quotients, and 0 where the divisor is 0. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    const keel_binary_args plain = { 0 };
    const keel_compare_args is_zero = { .is = KEEL_EQUAL };
    const keel_where_args one = { .fixed = { true, false }, .constant = { 1, 0 } };
    const keel_where_args zero = { .fixed = { true, false } };
    keel_value x[2];
    keel_value none, y[2];
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    KEEL_TRY(keel_emit_on(e, &keel_op_compare, &is_zero, &x[1], 1, &none));
    y[0] = x[0];
    KEEL_TRY(keel_emit_on(e, &keel_op_where, &one, (keel_value[]){ none, x[1] }, 2, &y[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_divide, &plain, y, 2, &y[0]));
    return keel_emit_on(e, &keel_op_where, &zero, (keel_value[]){ none, y[0] }, 2, e->out);
}

KEEL_PLAIN_OPERATION(ops_divide_no_nan, "DivideNoNan", "numpy", 2,
                     "Quotients, and 0 where the divisor is 0.")
