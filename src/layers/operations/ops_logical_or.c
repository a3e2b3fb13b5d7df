/* True if one of the two is true. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    static const keel_binary_args plain = { 0 };
    return keel_emit_of_truths(e, &keel_op_maximum, &plain);
}

KEEL_PLAIN_OPERATION(ops_logical_or, "LogicalOr", "numpy", 2, "True where one of two is.",
                     .whole = KEEL_WHOLE_ALWAYS)
