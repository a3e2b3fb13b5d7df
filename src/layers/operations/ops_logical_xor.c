/* True where one of the two is. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    static const keel_compare_args is = { .is = KEEL_NOT_EQUAL };
    keel_value x[2];
    keel_value truth[2];
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    for (int i = 0; i < 2; i++)
        KEEL_TRY(keel_emit_on(e, &keel_op_compare, &is, &x[i], 1, &truth[i]));
    return keel_emit_on(e, &keel_op_compare, &is, truth, 2, e->out);
}

KEEL_PLAIN_OPERATION(ops_logical_xor, "LogicalXor", "numpy", 2, "True where one of the two is.")
