/* The sum of a diagonal. */
#include "layers/operations/_diagonal.h"

static keel_status emit(keel_emit *e)
{
    keel_value x;
    KEEL_TRY(emit_diagonal(e, &x));
    return keel_emit_reduced(e, KEEL_REDUCE_SUM, x, keel_value_shape(e, x)->rank - 1, false,
                             e->out);
}

KEEL_ARGS_OPERATION(ops_trace, "Trace", "numpy", 1, "The sum of a diagonal of matrices.",
                    .whole = KEEL_WHOLE_KEPT)
