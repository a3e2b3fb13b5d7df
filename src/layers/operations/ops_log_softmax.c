/* The logarithm of softmax along an axis, or over several. */
#include "layers/operations/_softmax.h"

static keel_status emit(keel_emit *e)
{
    return emit_softmax(e, true);
}

KEEL_ARGS_OPERATION(ops_log_softmax, "LogSoftmax", "nn", 1,
                    "The logarithm of softmax along an axis, or over several.")
