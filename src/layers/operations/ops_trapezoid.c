/* The area under the places of an axis, which straight lines join. */
#include "layers/operations/_values.h"

typedef struct args_t {
    json_t *x;
    double dx;
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_LIST(args_t, x, "null", "where the places are; null: at equal distances"),
    KEEL_FLOAT(args_t, dx, "1.0", 0, 0, "the distance of two places"),
    KEEL_INT(args_t, axis, "-1", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

/* The distances of the places in a list, along the axis of `heights`. */
static keel_status distances(keel_emit *e, const json_t *list, keel_value heights, int64_t axis,
                             keel_value *out)
{
    const keel_shape *s = keel_value_shape(e, heights);
    const json_t *inner = json_object_get(json_object_get(list, "config"), "value");
    keel_numbers_args at = { 0 }, op = { .shape.rank = s->rank };
    KEEL_TRY(keel_list_read(inner ? inner : list, "x", &at));
    if (at.shape.rank != 1 || at.shape.dim[0] != s->dim[axis] + 1)
        return keel_fail(KEEL_EUNSUP, "x: a list with a number for each place is supported");
    for (int d = 0; d < s->rank; d++) op.shape.dim[d] = d == axis ? s->dim[d] : 1;
    for (int64_t i = 0; i < s->dim[axis]; i++) op.at[i] = at.at[i + 1] - at.at[i];
    return keel_emit_on(e, &keel_op_numbers, &op, e->in, 1, out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    int64_t axis;
    keel_value x[2], y, width;
    KEEL_TRY(keel_row_axis(e, a->axis, &axis));
    if (in.dim[axis] < 2) return keel_fail(KEEL_ESHAPE, "an axis of one place has no area");
    for (int i = 0; i < 2; i++)
        KEEL_TRY(keel_emit_part(e, e->in[0], axis, i, in.dim[axis] - 1, &x[i]));
    KEEL_TRY(keel_emit_pair(e, &keel_op_plus, x[0], x[1], &y));
    KEEL_TRY(keel_emit_scaled(e, y, a->x ? 0.5 : 0.5 * a->dx, 0, &y));
    if (a->x) {
        KEEL_TRY(distances(e, a->x, y, axis, &width));
        KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, y, width, &y));
    }
    return keel_emit_reduced(e, KEEL_REDUCE_SUM, y, axis, false, e->out);
}

KEEL_ARGS_OPERATION(ops_trapezoid, "Trapezoid", "numpy", 1, "The area under the places of an axis.")
