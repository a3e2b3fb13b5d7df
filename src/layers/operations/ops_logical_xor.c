/* True where one of the two is. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    static const keel_compare_args differ = { .is = KEEL_NOT_EQUAL };
    return keel_emit_of_truths(e, &keel_op_compare, &differ);
}

KEEL_PLAIN_OPERATION(ops_logical_xor, "LogicalXor", "numpy", 2, "True where one of the two is.",
                     .whole = KEEL_WHOLE_ALWAYS)
