/* x of a x = b, where only one triangle of a counts. */
#include "layers/operations/_solve.h"

typedef struct args_t {
    bool lower;
} args_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, lower, "false", "the lower triangle; else the upper"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const bool lower = ((const args_t *)e->args)->lower;
    const keel_band_args of = { .low = lower ? INT64_MIN : 0, .high = lower ? 0 : INT64_MAX };
    return emit_solve(e, &of);
}

KEEL_ARGS_OPERATION(ops_solve_triangular, "SolveTriangular", "linalg", 2,
                    "x of a x = b with a triangle of a.")
