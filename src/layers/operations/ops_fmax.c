/* The larger of two numbers; where one is no number, the other. */
#include "layers/operations/_either.h"

static keel_status emit(keel_emit *e)
{
    return emit_either(e, &keel_op_maximum);
}

KEEL_PLAIN_OPERATION(ops_fmax, "Fmax", "numpy", 2, "The larger of two, but for NaN.",
                     .whole = KEEL_WHOLE_KEPT)
