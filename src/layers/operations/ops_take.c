/* Places of an axis, by their numbers: of a value, which are the same for all rows, or of an array,
 * which a value of the model says. */
#include "layers/operations/_values.h"
#include <math.h>

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "null", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

/* Places of the first axis of an array, or of all its numbers. */
static keel_status take_from_array(keel_emit *e, const json_t *array)
{
    const args_t *a = e->args;
    const keel_axis_args first = { 0 };
    keel_shape out = keel_emit_in(e, 0)->shape;
    const int64_t count = keel_shape_count(&out);
    keel_value x, at;
    KEEL_TRY(keel_emit_numbers(e, array, "x", &x));
    const keel_shape shape = *keel_value_shape(e, x);
    const bool flat = a->axis == KEEL_INT_NULL;
    if (shape.rank == 0 || !(flat || a->axis == 0 || a->axis == -shape.rank))
        return keel_fail(KEEL_EUNSUP, "axis %lld of an array would come before the batch",
                         (long long)a->axis);
    const int64_t n = flat ? keel_shape_count(&shape) : shape.dim[0];
    const int64_t rest = keel_shape_count(&shape) / n;
    for (int d = 1; d < shape.rank && !flat; d++) {
        if (out.rank == KEEL_RANK_MAX)
            return keel_fail(KEEL_EUNSUP, "more than %d dims of a row", KEEL_RANK_MAX);
        out.dim[out.rank++] = shape.dim[d];
    }
    const keel_shape list = KEEL_SHAPE(count, 1), table = KEEL_SHAPE(n, rest);
    KEEL_TRY(keel_emit_view(e, &table, x, &x));
    KEEL_TRY(keel_emit_view(e, &list, e->in[0], &at));
    KEEL_TRY(keel_emit_repeated(e, at, 1, rest, &at));
    KEEL_TRY(keel_emit_on(e, &keel_op_take_along, &first, (keel_value[]){ x, at }, 2, &x));
    return keel_emit_view(e, &out, x, e->out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const json_t *list = keel_argument(e, 1, "indices"), *array = keel_argument(e, 0, "x");
    keel_numbers_args places;
    keel_shape out = { 0 };
    keel_axis_args along;
    keel_value x, part[KEEL_NUMBERS_MAX];
    if (json_is_array(array)) return take_from_array(e, array);
    if (json_object_get(list, KEEL_CALL_VALUE))
        return keel_fail(KEEL_EUNSUP, "indices of the model would take from all rows of a batch: "
                                      "take_along_axis takes from each row");
    if (a->axis == KEEL_INT_NULL) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis, &along.axis));
    KEEL_TRY(keel_list_read(list, "indices", &places));
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const int64_t dim = in.dim[along.axis], n = keel_shape_count(&places.shape);
    if (in.rank - 1 + places.shape.rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d dims of a row", KEEL_RANK_MAX);
    for (int d = 0; d < along.axis; d++) out.dim[out.rank++] = in.dim[d];
    for (int d = 0; d < places.shape.rank; d++) out.dim[out.rank++] = places.shape.dim[d];
    for (int d = (int)along.axis + 1; d < in.rank; d++) out.dim[out.rank++] = in.dim[d];
    for (int64_t i = 0; i < n; i++) {
        const double at = places.at[i];
        if (!(at >= (double)-dim && at < (double)dim) || at != trunc(at))
            return keel_fail(KEEL_EARG, "there is no place %g of %lld", at, (long long)dim);
        const int64_t place = (int64_t)at + (at < 0 ? dim : 0);
        KEEL_TRY(keel_emit_part(e, e->in[0], along.axis, place, 1, &part[i]));
    }
    KEEL_TRY(keel_emit_on(e, &keel_op_concatenate, &along, part, (int)n, &x));
    return keel_emit_view(e, &out, x, e->out);
}

KEEL_ARGS_OPERATION(ops_take, "Take", "numpy", 2, "Places of an axis, by their numbers.",
                    .places = true, .whole = KEEL_WHOLE_KEPT)
