/* The tangent of each number. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    const keel_binary_args plain = { 0 };
    keel_value x[2];
    KEEL_TRY(keel_emit_on(e, &keel_op_sin, NULL, e->in, 1, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_cos, NULL, e->in, 1, &x[1]));
    return keel_emit_on(e, &keel_op_divide, &plain, x, 2, e->out);
}

KEEL_PLAIN_OPERATION(ops_tan, "Tan", "numpy", 1, "The tangent of each number.")
