/* The mean over axes, where each place may have a weight. */
#include "layers/operations/_values.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "over which dims, the batch is 0"),
    { 0 },
};

/* The weights of a list are those of the places of one axis. */
static keel_status weights_at(keel_emit *e, keel_value *out)
{
    const args_t *a = e->args;
    const int rank = keel_emit_in(e, 0)->shape.rank;
    const json_t *list = keel_argument(e, 1, "weights");
    keel_shape shape = { .rank = rank };
    int64_t axis;
    if (!json_is_array(list) || json_is_array(json_array_get(list, 0)))
        return keel_value_at(e, 1, "weights", rank, out);
    if (a->axis.count != 1) return keel_fail(KEEL_EARG, "weights: a list is of one axis");
    KEEL_TRY(keel_row_axis(e, a->axis.at[0], &axis));
    KEEL_TRY(keel_emit_numbers(e, list, "weights", out));
    for (int d = 0; d < rank; d++) shape.dim[d] = 1;
    shape.dim[axis] = (int64_t)json_array_size(list);
    if (shape.dim[axis] != keel_emit_in(e, 0)->shape.dim[axis])
        return keel_fail(KEEL_ESHAPE, "weights: %lld numbers for %lld places",
                         (long long)shape.dim[axis],
                         (long long)keel_emit_in(e, 0)->shape.dim[axis]);
    return keel_emit_view(e, &shape, *out, out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const json_t *weights = e->call ? keel_argument(e, 1, "weights") : NULL;
    keel_reduce_args op = { .to = KEEL_REDUCE_MEAN };
    keel_value w, x;
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &op));
    if (!weights || json_is_null(weights)) return keel_emit_unary(e, &keel_op_reduce, &op);
    op.to = KEEL_REDUCE_SUM;
    KEEL_TRY(weights_at(e, &w));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, e->in[0], w, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &op, &x, 1, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &op, &w, 1, &w));
    return keel_emit_pair(e, &keel_op_divide, x, w, e->out);
}

KEEL_ARGS_OPERATION(ops_average, "Average", "numpy", 2, "The mean over axes, also weighted.")
