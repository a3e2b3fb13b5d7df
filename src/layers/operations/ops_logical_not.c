/* True if the value is false. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    return keel_emit_is(e, KEEL_EQUAL, e->in[0], 0, e->out);
}

KEEL_PLAIN_OPERATION(ops_logical_not, "LogicalNot", "numpy", 1, "True where it is false.",
                     .whole = KEEL_WHOLE_ALWAYS)
