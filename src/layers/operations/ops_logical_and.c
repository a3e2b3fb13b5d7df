/* True if both are true. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value truth[2];
    KEEL_TRY(keel_two_truths(e, truth));
    return keel_emit_pair(e, &keel_op_multiply, truth[0], truth[1], e->out);
}

KEEL_PLAIN_OPERATION(ops_logical_and, "LogicalAnd", "numpy", 2, "True where both are.",
                     .whole = KEEL_WHOLE_ALWAYS)
