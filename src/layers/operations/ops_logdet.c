/* The logarithm of the determinant of positive definite matrices; NaN if it is negative. */
#include "layers/operations/_values.h"
#include <math.h>

static keel_status emit(keel_emit *e)
{
    keel_value x, part[2], below;
    KEEL_TRY(keel_emit_each(e, &keel_op_log_determinant, e->in[0], &x));
    const keel_shape s = *keel_value_shape(e, x), out = keel_shape_without(s, s.rank - 1);
    for (int i = 0; i < 2; i++) {
        KEEL_TRY(keel_emit_part(e, x, s.rank - 1, i, 1, &part[i]));
        KEEL_TRY(keel_emit_view(e, &out, part[i], &part[i]));
    }
    KEEL_TRY(keel_emit_is(e, KEEL_LESS, part[0], 0, &below));
    return keel_emit_choice(e, below, KEEL_OF_NUMBER(NAN), KEEL_OF_VALUE(part[1]), e->out);
}

KEEL_PLAIN_OPERATION(ops_logdet, "Logdet", "math", 1, "The logarithm of the determinant.")
