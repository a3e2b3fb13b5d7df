/* A diagonal of the matrices that two dims make. */
#include "layers/operations/_diagonal.h"

static keel_status emit(keel_emit *e)
{
    return emit_diagonal(e, e->out);
}

KEEL_ARGS_OPERATION(ops_diagonal, "Diagonal", "numpy", 1, "A diagonal of matrices.",
                    .whole = KEEL_WHOLE_KEPT)
