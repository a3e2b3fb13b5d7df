/* Zeros in the shape of a value. */
#include "layers/operations/_like.h"

static keel_status emit(keel_emit *e)
{
    return emit_like(e, 0);
}

KEEL_ARGS_OPERATION(ops_zeros_like, "ZerosLike", "numpy", 1,
                    "As many zeros as a value has numbers.")
