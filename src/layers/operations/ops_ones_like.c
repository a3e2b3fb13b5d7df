/* Ones in the shape of a value. */
#include "layers/operations/_like.h"

static keel_status emit(keel_emit *e)
{
    return emit_like(e, 1);
}

KEEL_ARGS_OPERATION(ops_ones_like, "OnesLike", "numpy", 1, "As many ones as a value has numbers.")
