/* See _operation.h. */
#include "layers/operations/_operation.h"
#include "base/memory.h"
#include "base/python_json.h"
#include "layers/_numbers.h"
#include <string.h>

const json_t *keel_argument(const keel_emit *e, size_t place, const char *name)
{
    const json_t *v = json_array_get(json_object_get(e->call, "args"), place);
    if (!v) v = json_object_get(json_object_get(e->call, "kwargs"), name);
    const char *class_name = json_string_value(json_object_get(v, "class_name"));
    if (!class_name || (strcmp(class_name, "__numpy__") && strcmp(class_name, "__tensor__")))
        return v;
    return json_object_get(json_object_get(v, "config"), "value");
}

static keel_status number(const json_t *v, const char *name, double *out)
{
    if (json_is_boolean(v)) {
        *out = json_is_true(v);
        return KEEL_OK;
    }
    if (keel_json_number(v, out)) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP,
                     "argument %s: only values of the model and single numbers are supported",
                     name);
}

static keel_status read_shape(const json_t *v, const char *name, int most, keel_shape *shape)
{
    if (!keel_numbers_shape(v, shape))
        return keel_fail(KEEL_EUNSUP, "argument %s: an empty list, or more than %d dims", name,
                         KEEL_RANK_MAX);
    KEEL_TRY(keel_shape_check(shape, sizeof(double)));
    if (keel_shape_count(shape) > most)
        return keel_fail(KEEL_EUNSUP,
                         "argument %s: an array of %lld numbers; at most %d are "
                         "supported",
                         name, (long long)keel_shape_count(shape), most);
    return KEEL_OK;
}

static keel_status copy(const json_t *v, const char *name, keel_numbers_args *out)
{
    return keel_numbers_copy(v, &out->shape, out->at)
               ? KEEL_OK
               : keel_fail(KEEL_EUNSUP,
                           "argument %s: only values of the model, numbers, and lists "
                           "of them of equal length are supported",
                           name);
}

keel_status keel_list_read(const json_t *v, const char *name, keel_numbers_args *out)
{
    KEEL_TRY(read_shape(v, name, KEEL_NUMBERS_MAX, &out->shape));
    return copy(v, name, out);
}

static keel_status read_array(const json_t *v, const char *name, keel_numbers_args **out)
{
    keel_shape shape = { 0 };
    KEEL_TRY(read_shape(v, name, KEEL_ARRAY_MAX, &shape));
    keel_numbers_args *made = keel_calloc(1, keel_numbers_bytes(&shape));
    if (!made) return KEEL_ENOMEM;
    made->shape = shape;
    const keel_status s = copy(v, name, made);
    if (s < 0)
        keel_free(made);
    else
        *out = made;
    return s;
}

keel_status keel_emit_numbers(keel_emit *e, const json_t *v, const char *name, keel_value *out)
{
    keel_numbers_args *op;
    KEEL_TRY(read_array(v, name, &op));
    const keel_status s = keel_emit_on(e, &keel_op_numbers, op, e->in, 1, out);
    keel_free(op);
    return s;
}

keel_status keel_operand_at(const keel_emit *e, size_t place, const char *name, keel_operand *out)
{
    *out = (keel_operand){ .value = -1 };
    if (!e->call) { /* called from C, with values only */
        out->given = place < (size_t)e->n_in;
        if (out->given) out->value = e->in[place];
        return KEEL_OK;
    }
    const json_t *v = keel_argument(e, place, name);
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

keel_status keel_emit_array(keel_emit *e, const json_t *v, const char *name, int rank,
                            keel_value *out)
{
    keel_shape shape = { 0 };
    KEEL_TRY(keel_emit_numbers(e, v, name, out));
    const keel_shape s = keel_graph_spec(e->graph, *out)->shape;
    const int extra = s.rank > rank;
    if (s.rank > rank + 1 || (extra && s.dim[0] != 1))
        return keel_fail(KEEL_EUNSUP, "argument %s: an array with numbers for each row of a batch",
                         name);
    shape.rank = rank;
    for (int d = 0; d < rank; d++) {
        const int from = d - (rank - s.rank);
        shape.dim[d] = from < 0 ? 1 : s.dim[from];
    }
    return keel_emit_view(e, &shape, *out, out);
}

keel_status keel_operand_or_array(keel_emit *e, size_t place, const char *name, int rank,
                                  keel_operand *out)
{
    const json_t *v = keel_argument(e, place, name);
    if (!e->call || !json_is_array(v)) return keel_operand_at(e, place, name, out);
    *out = (keel_operand){ .given = true };
    return keel_emit_array(e, v, name, rank, &out->value);
}

keel_status keel_operands(keel_emit *e, keel_operand x[2])
{
    const int rank = keel_emit_in(e, 0)->shape.rank;
    KEEL_TRY(keel_operand_or_array(e, 0, "x1", rank, &x[0]));
    KEEL_TRY(keel_operand_or_array(e, 1, "x2", rank, &x[1]));
    if (x[0].given && x[1].given) return KEEL_OK;
    return keel_fail(KEEL_EARG, "it needs two operands");
}

keel_status keel_emit_binary(keel_emit *e, const keel_op *op, void *args)
{
    keel_operand x[2];
    KEEL_TRY(keel_operands(e, x));
    return keel_emit_operands(e, op, args, x);
}

keel_status keel_emit_operands(keel_emit *e, const keel_op *op, void *args, const keel_operand x[2])
{
    keel_binary_args *a = args;
    if (x[0].value >= 0 && x[1].value >= 0)
        return keel_emit_on(e, op, args, (keel_value[]){ x[0].value, x[1].value }, 2, e->out);
    a->left = x[0].value < 0;
    a->constant = keel_emit_constant(e, x[a->left ? 0 : 1].constant);
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

keel_status keel_emit_pair(keel_emit *e, const keel_op *op, keel_value a, keel_value b,
                           keel_value *out)
{
    const keel_binary_args plain = { 0 };
    return keel_emit_on(e, op, &plain, (keel_value[]){ a, b }, 2, out);
}

keel_status keel_emit_scaled(keel_emit *e, keel_value in, double scale, double offset,
                             keel_value *out)
{
    const keel_rescaling_args op = { .scale = scale, .offset = offset };
    return keel_emit_on(e, &keel_op_rescaling, &op, &in, 1, out);
}

keel_status keel_new_axis_of(int rank, int64_t axis, int64_t *place)
{
    const int64_t dims = rank + 1;
    if (axis < -dims || axis >= dims)
        return keel_fail(KEEL_EARG, "axis %lld: the output has %lld dims with the batch",
                         (long long)axis, (long long)dims);
    if (axis == 0 || axis == -dims)
        return keel_fail(KEEL_EUNSUP, "axis %lld would come before the batch", (long long)axis);
    if (rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d dims of a row", KEEL_RANK_MAX);
    *place = (axis < 0 ? axis + dims : axis) - 1;
    return KEEL_OK;
}

keel_status keel_new_axis(const keel_emit *e, int64_t axis, int64_t *place)
{
    return keel_new_axis_of(keel_emit_in(e, 0)->shape.rank + 1, axis, place);
}
