/* Numbers that sum to one along an axis, or over several. */
#include "layers/operations/_softmax.h"

static keel_status emit(keel_emit *e)
{
    return emit_softmax(e, false);
}

KEEL_ARGS_OPERATION(ops_softmax, "Softmax", "nn", 1,
                    "Numbers that sum to one along an axis, or over several.")
