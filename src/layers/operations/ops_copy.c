/* The same numbers. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    e->out[0] = e->in[0];
    return KEEL_OK;
}

KEEL_PLAIN_OPERATION(ops_copy, "Copy", "numpy", 1, "The same numbers.", .whole = KEEL_WHOLE_KEPT)
