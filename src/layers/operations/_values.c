/* See _values.h. */
#include "layers/operations/_values.h"

const keel_shape *keel_value_shape(const keel_emit *e, keel_value x)
{
    return &keel_graph_spec(e->graph, x)->shape;
}

keel_status keel_emit_each(keel_emit *e, const keel_op *op, keel_value x, keel_value *out)
{
    return keel_emit_on(e, op, NULL, &x, 1, out);
}

keel_status keel_emit_with(keel_emit *e, const keel_op *op, keel_value x, double number,
                           keel_value *out)
{
    const keel_binary_args args = { .constant = number };
    return keel_emit_on(e, op, &args, &x, 1, out);
}

keel_status keel_emit_along(keel_emit *e, const keel_op *op, keel_value x, int64_t axis,
                            keel_value *out)
{
    const keel_axis_args args = { .axis = axis };
    return keel_emit_on(e, op, &args, &x, 1, out);
}

keel_status keel_emit_is(keel_emit *e, keel_comparison is, keel_value x, double number,
                         keel_value *out)
{
    const keel_compare_args args = { .operands.constant = number, .is = is };
    return keel_emit_on(e, &keel_op_compare, &args, &x, 1, out);
}

keel_status keel_emit_compared(keel_emit *e, keel_comparison is, keel_value a, keel_value b,
                               keel_value *out)
{
    const keel_compare_args args = { .is = is };
    return keel_emit_on(e, &keel_op_compare, &args, (keel_value[]){ a, b }, 2, out);
}

keel_status keel_emit_no_number(keel_emit *e, keel_value x, keel_value *out)
{
    return keel_emit_compared(e, KEEL_NOT_EQUAL, x, x, out);
}

keel_status keel_emit_of_truths(keel_emit *e, const keel_op *op, const void *args)
{
    keel_value x[2], truth[2];
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    for (int i = 0; i < 2; i++) KEEL_TRY(keel_emit_is(e, KEEL_NOT_EQUAL, x[i], 0, &truth[i]));
    return keel_emit_on(e, op, args, truth, 2, e->out);
}

/* max(a, b) + log(1 + base^-|a - b|). Two equal infinities give their sum. */
keel_status keel_emit_log_of_sum(keel_emit *e, double unit)
{
    keel_value x[2], most, off, none, sum, y;
    KEEL_TRY(keel_two_values(e, "x1", "x2", x));
    KEEL_TRY(keel_emit_pair(e, &keel_op_maximum, x[0], x[1], &most));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, x[0], x[1], &off));
    KEEL_TRY(keel_emit_no_number(e, off, &none));
    KEEL_TRY(keel_emit_each(e, &keel_op_absolute, off, &y));
    KEEL_TRY(keel_emit_scaled(e, y, -unit, 0, &y));
    KEEL_TRY(keel_emit_each(e, &keel_op_softplus, y, &y));
    if (unit != 1) KEEL_TRY(keel_emit_scaled(e, y, 1 / unit, 0, &y));
    KEEL_TRY(keel_emit_pair(e, &keel_op_plus, most, y, &y));
    KEEL_TRY(keel_emit_pair(e, &keel_op_plus, x[0], x[1], &sum));
    return keel_emit_choice(e, none, KEEL_OF_VALUE(sum), KEEL_OF_VALUE(y), e->out);
}

keel_status keel_emit_truth_over(keel_emit *e, keel_reduce_to to)
{
    const keel_reduction *a = e->args;
    keel_reduce_args op = { .to = to, .keepdims = a->keepdims };
    keel_value x;
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &op));
    KEEL_TRY(keel_emit_is(e, KEEL_NOT_EQUAL, e->in[0], 0, &x));
    return keel_emit_on(e, &keel_op_reduce, &op, &x, 1, e->out);
}

keel_status keel_emit_choice(keel_emit *e, keel_value condition, keel_operand a, keel_operand b,
                             keel_value *out)
{
    const keel_where_args args = { .fixed = { a.value < 0, b.value < 0 },
                                   .constant = { a.constant, b.constant } };
    keel_value in[3] = { condition };
    int n = 1;
    if (a.value >= 0) in[n++] = a.value;
    if (b.value >= 0) in[n++] = b.value;
    return keel_emit_on(e, &keel_op_where, &args, in, n, out);
}

keel_status keel_emit_filled(keel_emit *e, keel_value like, double number, keel_value *out)
{
    return keel_emit_choice(e, like, KEEL_OF_NUMBER(number), KEEL_OF_NUMBER(number), out);
}

keel_status keel_emit_reduced(keel_emit *e, keel_reduce_to to, keel_value x, int64_t axis,
                              bool keepdims, keel_value *out)
{
    keel_reduce_args args = { .to = to, .keepdims = keepdims };
    args.over[axis] = true;
    return keel_emit_on(e, &keel_op_reduce, &args, &x, 1, out);
}

keel_status keel_emit_two_last(keel_emit *e, keel_value x, int64_t first, int64_t second,
                               keel_value *out)
{
    const int rank = keel_value_shape(e, x)->rank;
    int64_t from[KEEL_RANK_MAX];
    int n = 0;
    for (int d = 0; d < rank; d++)
        if (d != first && d != second) from[n++] = d;
    from[n++] = first;
    from[n] = second;
    return keel_emit_permuted(e, from, x, out);
}

keel_status keel_emit_diagonal_of(keel_emit *e, keel_value x, int64_t rows, int64_t columns,
                                  int64_t k, keel_value *out)
{
    keel_value y;
    KEEL_TRY(keel_emit_two_last(e, x, rows, columns, &y));
    keel_shape s = *keel_value_shape(e, y);
    const int64_t n_row = s.dim[s.rank - 2], n_column = s.dim[s.rank - 1];
    const int64_t down = k < 0 ? -k : 0, right = k > 0 ? k : 0;
    const int64_t length = n_row - down < n_column - right ? n_row - down : n_column - right;
    if (length < 1) return keel_fail(KEEL_ESHAPE, "offset: the diagonal is empty");
    /* one after another in memory, neighbours of the diagonal are n_column + 1 apart */
    s.dim[s.rank-- - 2] = n_row * n_column;
    KEEL_TRY(keel_emit_view(e, &s, y, &y));
    keel_slice_args op = keel_slice_all(&s);
    op.begin[s.rank - 1] = down * n_column + right;
    op.count[s.rank - 1] = length;
    op.step[s.rank - 1] = length > 1 ? n_column + 1 : 1;
    return keel_emit_on(e, &keel_op_slice, &op, &y, 1, out);
}

/* d = x - max; exp(d) / sum exp(d), or its logarithm d - log sum exp(d). */
static keel_status softmax_of_several(keel_emit *e, keel_reduce_args *over, bool log, keel_value x,
                                      keel_value *out)
{
    keel_value of, power;
    over->to = KEEL_REDUCE_MAX;
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, over, &x, 1, &of));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, x, of, &x));
    KEEL_TRY(keel_emit_each(e, &keel_op_exponential, x, &power));
    over->to = KEEL_REDUCE_SUM;
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, over, &power, 1, &of));
    if (!log) return keel_emit_pair(e, &keel_op_divide, power, of, out);
    KEEL_TRY(keel_emit_each(e, &keel_op_log, of, &of));
    return keel_emit_pair(e, &keel_op_subtract, x, of, out);
}

keel_status keel_emit_softmax(keel_emit *e, const keel_ints *axis, bool log, keel_value x,
                              keel_value *out)
{
    keel_reduce_args over = { .keepdims = true };
    int64_t along;
    if (axis->count == 0) return keel_fail(KEEL_EARG, "axis: there must be one");
    if (axis->count > 1) {
        KEEL_TRY(keel_reduce_axes(e, axis, &over));
        return softmax_of_several(e, &over, log, x, out);
    }
    KEEL_TRY(keel_row_axis(e, axis->at[0], &along));
    return keel_emit_along(e, log ? &keel_op_log_softmax : &keel_op_softmax, x, along, out);
}

keel_status keel_emit_alike(keel_emit *e, int64_t axis, keel_value x[2])
{
    for (int k = 0; k < 2; k++) {
        const int64_t to = keel_value_shape(e, x[1 - k])->dim[axis];
        KEEL_TRY(keel_emit_repeated(e, x[k], axis, to, &x[k]));
    }
    return KEEL_OK;
}

keel_status keel_emit_repeated(keel_emit *e, keel_value x, int64_t axis, int64_t to,
                               keel_value *out)
{
    const keel_upsample_args args = { .axis = axis, .factor = to };
    *out = x;
    if (keel_value_shape(e, x)->dim[axis] != 1 || to == 1) return KEEL_OK;
    return keel_emit_on(e, &keel_op_upsample, &args, &x, 1, out);
}

keel_status keel_emit_instead(keel_emit *e, const keel_layer *operation, keel_value x)
{
    keel_emit inner = *e;
    inner.in = &x;
    inner.n_in = 1;
    KEEL_TRY(operation->emit(&inner));
    e->gives = inner.gives;
    return KEEL_OK;
}

keel_status keel_value_at(keel_emit *e, size_t place, const char *name, int rank, keel_value *out)
{
    keel_numbers_args one = { .shape.rank = rank };
    keel_operand x;
    KEEL_TRY(keel_operand_or_array(e, place, name, rank, &x));
    if (!x.given) return keel_fail(KEEL_EARG, "argument %s: it must be given", name);
    *out = x.value;
    if (x.value >= 0) return KEEL_OK;
    for (int d = 0; d < rank; d++) one.shape.dim[d] = 1;
    one.at[0] = x.constant;
    return keel_emit_on(e, &keel_op_numbers, &one, e->in, 1, out);
}

keel_status keel_two_values(keel_emit *e, const char *first, const char *second, keel_value out[2])
{
    const int rank = keel_emit_in(e, 0)->shape.rank;
    KEEL_TRY(keel_value_at(e, 0, first, rank, &out[0]));
    return keel_value_at(e, 1, second, rank, &out[1]);
}
