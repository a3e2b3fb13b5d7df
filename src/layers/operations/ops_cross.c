/* The cross product of vectors of two or three numbers; a third that is missing is 0. */
#include "layers/operations/_values.h"

typedef struct args_t {
    int64_t axisa, axisb, axisc, axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axisa, "-1", -7, 7, "the vectors of the first, the batch is 0"),
    KEEL_INT(args_t, axisb, "-1", -7, 7, "those of the second"),
    KEEL_INT(args_t, axisc, "-1", -7, 7, "those of the result"),
    KEEL_INT(args_t, axis, "null", -7, 7, "all three"),
    { 0 },
};

/* The vectors of an operand along the last dim, in parts; -1: it is missing. */
static keel_status parts_of(keel_emit *e, keel_value x, int64_t keras_axis, keel_value part[3])
{
    int64_t from[KEEL_RANK_MAX], axis;
    const int last = keel_value_shape(e, x)->rank - 1;
    KEEL_TRY(keel_row_axis(e, keras_axis, &axis));
    if (axis > last) return keel_fail(KEEL_ESHAPE, "both must have the same dims");
    const int64_t n = keel_value_shape(e, x)->dim[axis];
    if (n != 2 && n != 3)
        return keel_fail(KEEL_ESHAPE, "vectors of %lld numbers; they must have 2 or 3",
                         (long long)n);
    for (int d = 0; d < last; d++) from[d] = d < axis ? d : d + 1;
    from[last] = axis;
    KEEL_TRY(keel_emit_permuted(e, from, x, &x));
    part[2] = -1;
    for (int64_t i = 0; i < n; i++) KEEL_TRY(keel_emit_part(e, x, last, i, 1, &part[i]));
    return KEEL_OK;
}

/* a[i] b[k] - a[k] b[i] */
static keel_status turn(keel_emit *e, const keel_value *a, const keel_value *b, int i, int k,
                        keel_value *out)
{
    keel_value x = -1, y = -1;
    if (a[i] >= 0 && b[k] >= 0) KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, a[i], b[k], &x));
    if (a[k] >= 0 && b[i] >= 0) KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, a[k], b[i], &y));
    *out = x;
    if (y < 0) return KEEL_OK;
    return x < 0 ? keel_emit_scaled(e, y, -1, 0, out)
                 : keel_emit_pair(e, &keel_op_subtract, x, y, out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *p = e->args;
    const bool same = p->axis != KEEL_INT_NULL;
    const int last = keel_emit_in(e, 0)->shape.rank - 1;
    int64_t from[KEEL_RANK_MAX], axis;
    keel_value x[2], a[3], b[3], y[3];
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    KEEL_TRY(parts_of(e, x[0], same ? p->axis : p->axisa, a));
    KEEL_TRY(parts_of(e, x[1], same ? p->axis : p->axisb, b));
    KEEL_TRY(turn(e, a, b, 0, 1, &y[2]));
    if (a[2] < 0 && b[2] < 0) { /* of two vectors in a plane only the third is there */
        const keel_shape s = *keel_value_shape(e, y[2]);
        const keel_shape as = keel_shape_without(s, last);
        return keel_emit_view(e, &as, y[2], e->out);
    }
    KEEL_TRY(turn(e, a, b, 1, 2, &y[0]));
    KEEL_TRY(turn(e, a, b, 2, 0, &y[1]));
    const keel_axis_args along = { .axis = last };
    KEEL_TRY(keel_emit_on(e, &keel_op_concatenate, &along, y, 3, &y[0]));
    KEEL_TRY(keel_row_axis(e, same ? p->axis : p->axisc, &axis));
    for (int d = 0; d <= last; d++) from[d] = d < axis ? d : d - 1;
    from[axis] = last;
    return keel_emit_permuted(e, from, y[0], e->out);
}

KEEL_ARGS_OPERATION(ops_cross, "Cross", "numpy", 2, "The cross product of vectors.",
                    .whole = KEEL_WHOLE_KEPT)
