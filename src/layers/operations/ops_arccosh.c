/* The inverse of the hyperbolic cosine: arcsinh(sqrt(x^2 - 1)). */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    static const keel_rescaling_args less = { .scale = 1, .offset = -1 };
    static const keel_rescaling_args more = { .scale = 1, .offset = 1 };
    const keel_binary_args plain = { 0 };
    keel_value x[2];
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &less, e->in, 1, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &more, e->in, 1, &x[1]));
    for (int i = 0; i < 2; i++) KEEL_TRY(keel_emit_on(e, &keel_op_sqrt, NULL, &x[i], 1, &x[i]));
    /* 2 arcsinh(sqrt((x - 1) / 2)) would need x - 1 alone; this keeps the digits near 1, too */
    KEEL_TRY(keel_emit_on(e, &keel_op_multiply, &plain, x, 2, &x[1]));
    return keel_emit_on(e, &keel_op_arcsinh, NULL, &x[1], 1, e->out);
}

KEEL_PLAIN_OPERATION(ops_arccosh, "Arccosh", "numpy", 1, "The inverse of the hyperbolic cosine.")
