/* The angle of each sine, which is that of the point (sqrt(1 - x^2), x). */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    static const keel_rescaling_args less = { .scale = -1, .offset = 1 };
    static const keel_rescaling_args more = { .scale = 1, .offset = 1 };
    const keel_binary_args plain = { 0 };
    keel_value x[2];
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &less, e->in, 1, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &more, e->in, 1, &x[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_multiply, &plain, x, 2, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_sqrt, NULL, &x[0], 1, &x[0]));
    x[1] = x[0];
    x[0] = e->in[0];
    return keel_emit_on(e, &keel_op_arctan2, &plain, x, 2, e->out);
}

KEEL_PLAIN_OPERATION(ops_arcsin, "Arcsin", "numpy", 1, "The angle of each sine.")
