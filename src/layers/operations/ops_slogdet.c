/* The sign of the determinant of matrices, and the logarithm of its size. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value x;
    KEEL_TRY(keel_emit_each(e, &keel_op_log_determinant, e->in[0], &x));
    const keel_shape s = *keel_value_shape(e, x), out = keel_shape_without(s, s.rank - 1);
    KEEL_TRY(keel_emit_outputs(e, 2));
    for (int i = 0; i < 2; i++) {
        KEEL_TRY(keel_emit_part(e, x, s.rank - 1, i, 1, &e->out[i]));
        KEEL_TRY(keel_emit_view(e, &out, e->out[i], &e->out[i]));
    }
    return KEEL_OK;
}

KEEL_PLAIN_OPERATION(ops_slogdet, "Slogdet", "numpy", 1,
                     "The sign of the determinant and the logarithm of its size.")
