/* The length of vectors, and the norm of matrices. */
#include "base/python_json.h"
#include "layers/operations/_values.h"
#include <math.h>
#include <string.h>

typedef struct args_t {
    json_t *ord;
    keel_ints axis;
    bool keepdims;
} args_t;

static const keel_field fields[] = {
    KEEL_EITHER(args_t, ord, "null", "which norm: null is 2 of vectors, \"fro\" of matrices"),
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "over which dims, the batch is 0"),
    KEEL_BOOL(args_t, keepdims, "false", "keep them as dims of 1"),
    { 0 },
};

/* The root of the sum of squares over all the dims. */
static keel_status euclidean(keel_emit *e, const keel_reduce_args *sum)
{
    keel_value x;
    KEEL_TRY(keel_emit_each(e, &keel_op_square, e->in[0], &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, sum, &x, 1, &x));
    return keel_emit_each(e, &keel_op_sqrt, x, e->out);
}

static keel_status of_vectors(keel_emit *e, double ord, const keel_reduce_args *sum)
{
    keel_value x;
    if (ord == 0) { /* how many are not 0 */
        KEEL_TRY(keel_emit_is(e, KEEL_NOT_EQUAL, e->in[0], 0, &x));
        return keel_emit_on(e, &keel_op_reduce, sum, &x, 1, e->out);
    }
    KEEL_TRY(keel_emit_each(e, &keel_op_absolute, e->in[0], &x));
    if (isinf(ord)) {
        keel_reduce_args over = *sum;
        over.to = ord > 0 ? KEEL_REDUCE_MAX : KEEL_REDUCE_MIN;
        return keel_emit_on(e, &keel_op_reduce, &over, &x, 1, e->out);
    }
    if (ord != 1) KEEL_TRY(keel_emit_with(e, &keel_op_power, x, ord, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, sum, &x, 1, &x));
    e->out[0] = x;
    return ord == 1 ? KEEL_OK : keel_emit_with(e, &keel_op_power, x, 1 / ord, e->out);
}

/* The largest sum of a column, or the smallest (-1); of a row by an ord without an end. */
static keel_status of_columns(keel_emit *e, double ord, int64_t row, int64_t column)
{
    const bool keepdims = ((const args_t *)e->args)->keepdims;
    keel_value x;
    KEEL_TRY(keel_emit_each(e, &keel_op_absolute, e->in[0], &x));
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_SUM, x, row, keepdims, &x));
    if (!keepdims && column > row) column--;
    return keel_emit_reduced(e, ord > 0 ? KEEL_REDUCE_MAX : KEEL_REDUCE_MIN, x, column, keepdims,
                             e->out);
}

/* The largest singular value (2), the smallest (-2), or their sum. */
static keel_status of_singular_values(keel_emit *e, keel_reduce_to to, int64_t row, int64_t column)
{
    keel_shape out = keel_emit_in(e, 0)->shape;
    keel_value x;
    KEEL_TRY(keel_emit_two_last(e, e->in[0], row, column, &x));
    KEEL_TRY(keel_emit_each(e, &keel_op_singular_values, x, &x));
    KEEL_TRY(keel_emit_reduced(e, to, x, out.rank - 2, false, e->out));
    out.dim[row] = out.dim[column] = 1;
    x = e->out[0];
    return ((const args_t *)e->args)->keepdims ? keel_emit_view(e, &out, x, e->out) : KEEL_OK;
}

static keel_status of_matrices(keel_emit *e, double ord, bool nuclear)
{
    const args_t *a = e->args;
    int64_t row, column;
    KEEL_TRY(keel_row_axis(e, a->axis.at[0], &row));
    KEEL_TRY(keel_row_axis(e, a->axis.at[1], &column));
    if (row == column) return keel_fail(KEEL_EARG, "axis: the two must differ");
    if (nuclear) return of_singular_values(e, KEEL_REDUCE_SUM, row, column);
    if (ord == 2) return of_singular_values(e, KEEL_REDUCE_MAX, row, column);
    if (ord == -2) return of_singular_values(e, KEEL_REDUCE_MIN, row, column);
    if (isinf(ord)) return of_columns(e, ord, column, row);
    if (ord == 1 || ord == -1) return of_columns(e, ord, row, column);
    return keel_fail(
        KEEL_EUNSUP,
        "ord %g of matrices is not supported: 1, -1, 2, -2, inf, -inf, \"fro\" and \"nuc\" are",
        ord);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    double ord = 2;
    const bool number = keel_json_number(a->ord, &ord);
    const char *word = number ? NULL : json_string_value(a->ord);
    keel_reduce_args sum = { .to = KEEL_REDUCE_SUM, .keepdims = a->keepdims };
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &sum));
    if (a->axis.count > 2 || a->axis.count < 1)
        return keel_fail(KEEL_EUNSUP, "one axis of vectors, or two of matrices, are supported");
    const bool matrix = a->axis.count == 2;
    const bool nuclear = matrix && word && !strcmp(word, "nuc");
    if (word && !nuclear && (!matrix || strcmp(word, "fro")))
        return keel_fail(KEEL_EUNSUP, "ord '%.20s' is not supported", word);
    if (a->ord && !word && !number) return keel_fail(KEEL_EARG, "ord: a number or a word");
    if (matrix ? !a->ord || (word && !nuclear) : ord == 2) return euclidean(e, &sum);
    return matrix ? of_matrices(e, ord, nuclear) : of_vectors(e, ord, &sum);
}

KEEL_ARGS_OPERATION(ops_norm, "Norm", "linalg", 1, "The length of vectors.")
