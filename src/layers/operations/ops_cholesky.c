/* The triangle that times its transpose is a matrix. */
#include "layers/operations/_triangle.h"

static keel_status emit(keel_emit *e)
{
    keel_value y;
    KEEL_TRY(keel_emit_each(e, &keel_op_cholesky, e->in[0], &y));
    e->out[0] = y;
    return ((const args_t *)e->args)->upper ? emit_turned(e, y, e->out) : KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_cholesky, "Cholesky", "linalg", 1,
                    "The triangle that times its transpose is a matrix.")
