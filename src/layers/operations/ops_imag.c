/* The imaginary part of real numbers: 0. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    return keel_emit_filled(e, e->in[0], 0, e->out);
}

KEEL_PLAIN_OPERATION(ops_imag, "Imag", "numpy", 1, "The imaginary part.", .whole = KEEL_WHOLE_KEPT)
