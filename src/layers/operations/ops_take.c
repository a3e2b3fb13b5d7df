/* Places of an axis, by their numbers. */
#include "layers/operations/_operation.h"
#include "base/memory.h"

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "null", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

/* One place of an axis; the axis stays, as a dim of 1. */
static keel_status place(keel_emit *e, int64_t axis, const json_t *at, keel_value *out)
{
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    const int64_t n = in->dim[axis], i = json_integer_value(at);
    keel_slice_args op = { 0 };
    if (!json_is_integer(at))
        return keel_fail(KEEL_EUNSUP, "indices: a whole number or a list of them is supported");
    if (i < -n || i >= n)
        return keel_fail(KEEL_EARG, "there is no place %lld of %lld", (long long)i, (long long)n);
    for (int d = 0; d < in->rank; d++) {
        op.step[d] = 1;
        op.count[d] = in->dim[d];
    }
    op.begin[axis] = i < 0 ? i + n : i;
    op.count[axis] = 1;
    return keel_emit_on(e, &keel_op_slice, &op, e->in, 1, out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const json_t *at = json_array_get(json_object_get(e->call, "args"), 1);
    keel_axis_args along;
    if (!at) at = json_object_get(json_object_get(e->call, "kwargs"), "indices");
    if (a->axis == KEEL_INT_NULL) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis, &along.axis));
    if (json_is_integer(at)) {
        keel_shape one = keel_emit_in(e, 0)->shape;
        keel_value x;
        KEEL_TRY(place(e, along.axis, at, &x));
        one.rank--;
        for (int d = (int)along.axis; d < one.rank; d++) one.dim[d] = one.dim[d + 1];
        return keel_emit_view(e, &one, x, e->out);
    }
    const size_t n = json_array_size(at);
    if (n == 0)
        return keel_fail(KEEL_EUNSUP, "indices: a whole number or a list of them is supported");
    keel_value *x = keel_calloc(n, sizeof *x);
    if (!x) return KEEL_ENOMEM;
    keel_status s = KEEL_OK;
    for (size_t i = 0; i < n && s >= 0; i++) s = place(e, along.axis, json_array_get(at, i), &x[i]);
    if (s >= 0) s = keel_emit_on(e, &keel_op_concatenate, &along, x, (int)n, e->out);
    keel_free(x);
    return s;
}

const keel_layer keel_layer_ops_take = {
    .type = { KEEL_OPERATION_HEAD("Take", "numpy", "Places of an axis, by their numbers."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
