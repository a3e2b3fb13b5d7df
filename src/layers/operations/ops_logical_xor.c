/* True where one of the two is. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    static const keel_compare_args differ = { .is = KEEL_NOT_EQUAL };
    keel_value truth[2];
    KEEL_TRY(keel_two_truths(e, truth));
    return keel_emit_on(e, &keel_op_compare, &differ, truth, 2, e->out);
}

KEEL_PLAIN_OPERATION(ops_logical_xor, "LogicalXor", "numpy", 2, "True where one of the two is.",
                     .whole = KEEL_WHOLE_ALWAYS)
