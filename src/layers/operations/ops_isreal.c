/* True: the values of a model are real numbers. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    return keel_emit_filled(e, e->in[0], 1, e->out);
}

KEEL_PLAIN_OPERATION(ops_isreal, "Isreal", "numpy", 1, "Is it a real number?",
                     .whole = KEEL_WHOLE_ALWAYS)
