/* True if one of the two is true. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value truth[2];
    KEEL_TRY(keel_two_truths(e, truth));
    return keel_emit_pair(e, &keel_op_maximum, truth[0], truth[1], e->out);
}

KEEL_PLAIN_OPERATION(ops_logical_or, "LogicalOr", "numpy", 2, "True where one of two is.",
                     .whole = KEEL_WHOLE_ALWAYS)
