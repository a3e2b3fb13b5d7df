/* The inverse of Moore and Penrose. */
#include "layers/operations/_operation.h"
#include "ops/pseudo_inverse.h"
#include <float.h>
#include <math.h>

typedef struct args_t {
    double rcond;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, rcond, "null", 0, 0, "the part of the largest singular value that is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    int64_t most = 1;
    for (int d = in.rank > 1 ? in.rank - 2 : 0; d < in.rank; d++)
        if (in.dim[d] > most) most = in.dim[d];
    const keel_pseudo_inverse_args op = { .least = isnan(a->rcond)
                                                       ? 10 * (double)most * (double)FLT_EPSILON
                                                       : a->rcond };
    return keel_emit_unary(e, &keel_op_pseudo_inverse, &op);
}

KEEL_ARGS_OPERATION(ops_pinv, "Pinv", "linalg", 1, "The inverse of Moore and Penrose.")
