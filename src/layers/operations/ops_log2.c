/* The logarithm to base 2 of each number. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    static const keel_rescaling_args factor = { .scale = 1.4426950408889634 };
    keel_value x;
    KEEL_TRY(keel_emit_on(e, &keel_op_log, NULL, e->in, 1, &x));
    return keel_emit_on(e, &keel_op_rescaling, &factor, &x, 1, e->out);
}

KEEL_PLAIN_OPERATION(ops_log2, "Log2", "numpy", 1, "The logarithm to base 2 of each number.")
