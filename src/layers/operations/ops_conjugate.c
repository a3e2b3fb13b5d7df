/* The complex conjugate of real numbers: themselves. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    e->out[0] = e->in[0];
    return KEEL_OK;
}

KEEL_PLAIN_OPERATION(ops_conjugate, "Conjugate", "numpy", 1, "The complex conjugate.",
                     .whole = KEEL_WHOLE_KEPT)
