/* The length of a vector of two. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value o[2];
    KEEL_TRY(keel_two_values(e, "x1", "x2", o));
    const keel_binary_args plain = { 0 };
    keel_value x[2];
    for (int i = 0; i < 2; i++) KEEL_TRY(keel_emit_on(e, &keel_op_square, NULL, &o[i], 1, &x[i]));
    KEEL_TRY(keel_emit_on(e, &keel_op_plus, &plain, x, 2, &x[0]));
    return keel_emit_on(e, &keel_op_sqrt, NULL, &x[0], 1, e->out);
}

KEEL_PLAIN_OPERATION(ops_hypot, "Hypot", "numpy", 2, "The length of a vector of two.",
                     .wide_alone = true)
