/* True if both are true. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    static const keel_binary_args plain = { 0 };
    return keel_emit_of_truths(e, &keel_op_multiply, &plain);
}

KEEL_PLAIN_OPERATION(ops_logical_and, "LogicalAnd", "numpy", 2, "True where both are.",
                     .whole = KEEL_WHOLE_ALWAYS)
