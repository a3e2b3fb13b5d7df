/* The smaller of two numbers; where one is no number, the other. */
#include "layers/operations/_either.h"

static keel_status emit(keel_emit *e)
{
    return emit_either(e, &keel_op_minimum);
}

KEEL_PLAIN_OPERATION(ops_fmin, "Fmin", "numpy", 2, "The smaller of two, but for NaN.",
                     .whole = KEEL_WHOLE_KEPT)
