/* The distances of each point of one list to each of another; points are along the last dim. */
#include "layers/operations/_values.h"

/* The points of an operand, with a dim of 1 before or behind that which counts them. */
static keel_status points(keel_emit *e, size_t place, const char *name, int rank, bool behind,
                          keel_value *out)
{
    KEEL_TRY(keel_value_at(e, place, name, rank, out));
    const keel_shape s = *keel_value_shape(e, *out);
    if (s.rank != rank)
        return keel_fail(KEEL_ESHAPE, "argument %s: %d dims of a row, not %d", name, s.rank, rank);
    const keel_shape as = keel_shape_with_one(s, rank - (behind ? 1 : 2));
    return keel_emit_view(e, &as, *out, out);
}

static keel_status emit(keel_emit *e)
{
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_value x, y;
    if (rank < 2 || rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "rows must be lists of points, or all rows of a batch would "
                                      "meet each other");
    KEEL_TRY(points(e, 0, "x", rank, true, &x));
    KEEL_TRY(points(e, 1, "y", rank, false, &y));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, x, y, &x));
    KEEL_TRY(keel_emit_each(e, &keel_op_square, x, &x));
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_SUM, x, rank, false, &x));
    return keel_emit_each(e, &keel_op_sqrt, x, e->out);
}

KEEL_PLAIN_OPERATION(ops_cdist, "CDist", "math", 2, "The distances of points.")
