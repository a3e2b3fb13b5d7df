/* The inverse of the matrix that a triangle times its transpose is. */
#include "layers/operations/_triangle.h"

static keel_status emit(keel_emit *e)
{
    const bool upper = ((const args_t *)e->args)->upper;
    const keel_band_args of = { .low = upper ? 0 : INT64_MIN, .high = upper ? INT64_MAX : 0 };
    keel_value x, turned;
    KEEL_TRY(keel_emit_on(e, &keel_op_band, &of, e->in, 1, &x));
    KEEL_TRY(keel_emit_each(e, &keel_op_inverse, x, &x));
    KEEL_TRY(emit_turned(e, x, &turned));
    const keel_value in[2] = { upper ? x : turned, upper ? turned : x };
    return keel_emit_on(e, &keel_op_matmul, NULL, in, 2, e->out);
}

KEEL_ARGS_OPERATION(ops_cholesky_inverse, "CholeskyInverse", "linalg", 1,
                    "The inverse of a matrix, from its triangle.")
