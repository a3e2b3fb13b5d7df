/* One of two values, chosen by a condition. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    keel_operand x[3];
    keel_value in[3];
    int n = 0;
    keel_where_args op = { 0 };
    KEEL_TRY(keel_operand_at(e, 0, "condition", &x[0]));
    KEEL_TRY(keel_operand_at(e, 1, "x1", &x[1]));
    KEEL_TRY(keel_operand_at(e, 2, "x2", &x[2]));
    if (x[0].value < 0 || !x[1].given || !x[2].given)
        return keel_fail(KEEL_EUNSUP, "it needs a condition of the model and two operands");
    in[n++] = x[0].value;
    for (int i = 0; i < 2; i++) {
        op.fixed[i] = x[i + 1].value < 0;
        op.constant[i] = x[i + 1].constant;
        if (!op.fixed[i]) in[n++] = x[i + 1].value;
    }
    return keel_emit_on(e, &keel_op_where, &op, in, n, e->out);
}

KEEL_PLAIN_OPERATION(ops_where, "Where", "numpy", 3, "One of two values by a condition.")
