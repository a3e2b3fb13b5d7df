/* How many singular values of a matrix are above a bound: a number, or what rounding leaves of the
 * largest one. */
#include "layers/operations/_values.h"
#include <float.h>
#include <math.h>

typedef struct args_t {
    double tol;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, tol, "null", 0, 0, "the bound"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    keel_value s, bound, above;
    KEEL_TRY(keel_emit_each(e, &keel_op_singular_values, e->in[0], &s));
    const int last = keel_value_shape(e, s)->rank - 1;
    const int64_t m = in.dim[in.rank - 2], n = in.dim[in.rank - 1];
    if (isnan(a->tol)) {
        KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_MAX, s, last, true, &bound));
        KEEL_TRY(
            keel_emit_scaled(e, bound, (double)(m > n ? m : n) * (double)FLT_EPSILON, 0, &bound));
        KEEL_TRY(keel_emit_compared(e, KEEL_GREATER, s, bound, &above));
    } else {
        KEEL_TRY(keel_emit_is(e, KEEL_GREATER, s, a->tol, &above));
    }
    return keel_emit_reduced(e, KEEL_REDUCE_SUM, above, last, false, e->out);
}

KEEL_ARGS_OPERATION(ops_matrix_rank, "MatrixRank", "linalg", 1,
                    "How many singular values of a matrix are not 0.", .whole = KEEL_WHOLE_ALWAYS)
