/* Solutions of linear equations: b has a matrix for each one of a, or a vector. */
#ifndef KEEL_LAYERS_OPERATIONS_SOLVE_H
#define KEEL_LAYERS_OPERATIONS_SOLVE_H
#include "layers/operations/_values.h"
#include "ops/band.h"

/* `of`: the diagonals of a that count; NULL: all. */
static inline keel_status emit_solve(keel_emit *e, const keel_band_args *of)
{
    keel_operand given[2];
    keel_value x[2], y;
    KEEL_TRY(keel_operand_at(e, 0, "a", &given[0]));
    KEEL_TRY(keel_operand_at(e, 1, "b", &given[1]));
    if (given[0].value < 0 || given[1].value < 0)
        return keel_fail(KEEL_EUNSUP, "it needs two values of the model");
    for (int i = 0; i < 2; i++) x[i] = given[i].value;
    const keel_shape a = *keel_value_shape(e, x[0]), b = *keel_value_shape(e, x[1]);
    const bool vector = b.rank == a.rank - 1;
    const keel_shape column = vector ? keel_shape_with_one(b, b.rank) : b;
    if (a.rank < 2) return keel_fail(KEEL_ESHAPE, "rows of a must be square matrices");
    if (of) KEEL_TRY(keel_emit_on(e, &keel_op_band, of, &x[0], 1, &x[0]));
    KEEL_TRY(keel_emit_view(e, &column, x[1], &x[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_solve, NULL, x, 2, &y));
    return keel_emit_view(e, &b, y, e->out);
}

#endif
