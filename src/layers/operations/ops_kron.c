/* Kronecker's product of each row and an array: each element of the first operand times the whole
 * second. */
#include "layers/operations/_values.h"

/* Each dim of a value becomes two, one of them 1. */
static keel_status spread(keel_emit *e, keel_value x, bool first, keel_value *out)
{
    const keel_shape s = *keel_value_shape(e, x);
    keel_shape as = { .rank = 2 * s.rank };
    for (int d = 0; d < s.rank; d++) {
        as.dim[2 * d] = first ? s.dim[d] : 1;
        as.dim[2 * d + 1] = first ? 1 : s.dim[d];
    }
    return keel_emit_view(e, &as, x, out);
}

static keel_status emit(keel_emit *e)
{
    keel_value x[2], y;
    if (e->n_in != 1)
        return keel_fail(KEEL_EUNSUP, "a value of the model and an array are supported: of two "
                                      "values each row of a batch would meet all others");
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    keel_shape out = *keel_value_shape(e, x[0]);
    const keel_shape *other = keel_value_shape(e, x[1]);
    if (2 * out.rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "rows of %d dims; at most %d are supported", out.rank,
                         KEEL_RANK_MAX / 2);
    for (int d = 0; d < out.rank; d++) out.dim[d] *= other->dim[d];
    KEEL_TRY(spread(e, x[0], true, &x[0]));
    KEEL_TRY(spread(e, x[1], false, &x[1]));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x[0], x[1], &y));
    return keel_emit_view(e, &out, y, e->out);
}

KEEL_PLAIN_OPERATION(ops_kron, "Kron", "numpy", 1, "Kronecker's product with an array.",
                     .whole = KEEL_WHOLE_KEPT)
