/* See _operation.h. */
#include "layers/operations/_operation.h"
#include <string.h>

static keel_status number(const json_t *v, const char *name, double *out)
{
    const json_t *array = json_object_get(json_object_get(v, "config"), "value");
    const char *class_name = json_string_value(json_object_get(v, "class_name"));
    if (json_is_boolean(v)) {
        *out = json_is_true(v);
        return KEEL_OK;
    }
    if (class_name && !strcmp(class_name, "__numpy__") && json_is_number(array)) v = array;
    if (!json_is_number(v))
        return keel_fail(KEEL_EUNSUP,
                         "argument %s: only values of the model and single numbers are "
                         "supported",
                         name);
    *out = json_number_value(v);
    return KEEL_OK;
}

keel_status keel_operand_at(const keel_emit *e, size_t place, const char *name, keel_operand *out)
{
    *out = (keel_operand){ .value = -1 };
    if (!e->call) { /* called from C, with values only */
        out->given = place < (size_t)e->n_in;
        if (out->given) out->value = e->in[place];
        return KEEL_OK;
    }
    const json_t *v = json_array_get(json_object_get(e->call, "args"), place);
    if (!v) v = json_object_get(json_object_get(e->call, "kwargs"), name);
    if (!v || json_is_null(v)) return KEEL_OK;
    const json_t *in = json_object_get(v, KEEL_CALL_VALUE);
    out->given = true;
    if (!in) return number(v, name, &out->constant);
    out->value = e->in[json_integer_value(in)];
    return KEEL_OK;
}

keel_status keel_emit_unary(keel_emit *e, const keel_op *op, const void *args)
{
    return keel_emit_on(e, op, args, e->in, 1, e->out);
}

keel_status keel_emit_binary(keel_emit *e, const keel_op *op, void *args)
{
    keel_binary_args *a = args;
    keel_operand x[2];
    KEEL_TRY(keel_operand_at(e, 0, "x1", &x[0]));
    KEEL_TRY(keel_operand_at(e, 1, "x2", &x[1]));
    if (!x[0].given || !x[1].given) return keel_fail(KEEL_EARG, "it needs two operands");
    if (x[0].value >= 0 && x[1].value >= 0)
        return keel_emit_on(e, op, args, (keel_value[]){ x[0].value, x[1].value }, 2, e->out);
    a->left = x[0].value < 0;
    a->constant = x[a->left ? 0 : 1].constant;
    return keel_emit_on(e, op, args, &x[a->left ? 1 : 0].value, 1, e->out);
}

keel_status keel_reduce_axes(const keel_emit *e, const keel_ints *axis, keel_reduce_args *out)
{
    if (axis->count < 0)
        return keel_fail(KEEL_EUNSUP, "axis null is the batch, too: rows do not see each other");
    for (int i = 0; i < axis->count; i++) {
        int64_t row_axis;
        KEEL_TRY(keel_row_axis(e, axis->at[i], &row_axis));
        out->over[row_axis] = true;
    }
    return KEEL_OK;
}

keel_shape keel_shape_with_one(keel_shape s, int64_t place)
{
    for (int d = s.rank++; d > place; d--) s.dim[d] = s.dim[d - 1];
    s.dim[place] = 1;
    return s;
}

keel_status keel_new_axis(const keel_emit *e, int64_t axis, int64_t *place)
{
    const int64_t rank = keel_emit_in(e, 0)->shape.rank + 2;
    if (axis < -rank || axis >= rank)
        return keel_fail(KEEL_EARG, "axis %lld: the output has %lld dims with the batch",
                         (long long)axis, (long long)rank);
    if (axis == 0 || axis == -rank)
        return keel_fail(KEEL_EUNSUP, "axis %lld would come before the batch", (long long)axis);
    if (rank - 1 > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d dims of a row", KEEL_RANK_MAX);
    *place = (axis < 0 ? axis + rank : axis) - 1;
    return KEEL_OK;
}

keel_status keel_emit_variance(keel_emit *e, keel_value *out)
{
    const keel_reduction *a = e->args;
    const keel_binary_args plain = { 0 };
    keel_reduce_args mean = { .to = KEEL_REDUCE_MEAN, .keepdims = true };
    keel_value x[2] = { e->in[0], -1 };
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &mean));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &mean, e->in, 1, &x[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_subtract, &plain, x, 2, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_square, NULL, &x[0], 1, &x[0]));
    mean.keepdims = a->keepdims;
    return keel_emit_on(e, &keel_op_reduce, &mean, &x[0], 1, out);
}
