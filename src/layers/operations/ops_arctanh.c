/* The inverse of the hyperbolic tangent: (log(1 + x) - log(1 - x)) / 2. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    static const keel_rescaling_args minus = { .scale = -1 }, half = { .scale = 0.5 };
    const keel_binary_args plain = { 0 };
    keel_value x[2];
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &minus, e->in, 1, &x[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_log1p, NULL, &x[1], 1, &x[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_log1p, NULL, e->in, 1, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_subtract, &plain, x, 2, &x[0]));
    return keel_emit_on(e, &keel_op_rescaling, &half, &x[0], 1, e->out);
}

KEEL_PLAIN_OPERATION(ops_arctanh, "Arctanh", "numpy", 1, "The inverse of the hyperbolic tangent.")
