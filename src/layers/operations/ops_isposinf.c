/* True where it is positive infinity. */
#include "layers/operations/_values.h"
#include <math.h>

static keel_status emit(keel_emit *e)
{
    return keel_emit_is(e, KEEL_EQUAL, e->in[0], INFINITY, e->out);
}

KEEL_PLAIN_OPERATION(ops_isposinf, "Isposinf", "numpy", 1, "Is it positive infinity?",
                     .whole = KEEL_WHOLE_ALWAYS)
