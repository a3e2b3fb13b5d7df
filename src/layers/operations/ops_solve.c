/* x of a x = b. */
#include "layers/operations/_solve.h"

static keel_status emit(keel_emit *e)
{
    return emit_solve(e, NULL);
}

KEEL_PLAIN_OPERATION(ops_solve, "Solve", "linalg", 2, "x of a x = b.")
