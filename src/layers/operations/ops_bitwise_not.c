/* The bits of a whole number turned over: -1 - x. No gradient flows. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value x;
    KEEL_TRY(keel_emit_each(e, &keel_op_stop_gradient, e->in[0], &x));
    return keel_emit_scaled(e, x, -1, -1, e->out);
}

KEEL_PLAIN_OPERATION(ops_bitwise_not, "BitwiseNot", "numpy", 1, "The bits turned over.",
                     .whole = KEEL_WHOLE_KEPT)
