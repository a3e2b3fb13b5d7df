/* Products of matrices: of two values, or of a value and an array, which is the same for all rows.
 */
#include "layers/operations/_einsum.h"
#include "layers/operations/_values.h"
#include <stdio.h>

/* Of the dims before those of the matrices, one of 1 goes with any number. */
static keel_status of_values(keel_emit *e)
{
    if (e->n_in != 2) return keel_fail(KEEL_EARG, "it needs two matrices");
    keel_value x[2] = { e->in[0], e->in[1] };
    const int rank = keel_emit_in(e, 0)->shape.rank;
    const bool alike = keel_emit_in(e, 1)->shape.rank == rank;
    for (int d = 0; d + 2 < rank && alike; d++) KEEL_TRY(keel_emit_alike(e, d, x));
    return keel_emit_on(e, &keel_op_matmul, NULL, x, 2, e->out);
}

/* As a sum of products: "abcd,cbde->abce" without the batch of the array, whose dims before those
 * of its matrix are the last ones before those of the rows' matrices. */
static keel_status with_array(keel_emit *e, const json_t *array, bool left)
{
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_term in[2] = { { .value = e->in[0] }, { .array = true } };
    char rows[KEEL_LETTERS] = "", of[KEEL_LETTERS] = "", out[KEEL_LETTERS] = "", text[80];
    KEEL_TRY(keel_emit_numbers(e, array, left ? "x1" : "x2", &in[1].value));
    keel_shape s = *keel_value_shape(e, in[1].value);
    if (s.rank == rank + 1 && s.dim[0] == 1) { /* a batch of 1 */
        for (int d = 1; d < s.rank; d++) s.dim[d - 1] = s.dim[d];
        s.rank--;
        KEEL_TRY(keel_emit_view(e, &s, in[1].value, &in[1].value));
    }
    if (rank < 1 + left || s.rank > (rank > 1 ? rank : 2))
        return keel_fail(KEEL_EUNSUP, "an array with a matrix for each row of a batch");
    const int over = rank - 1 - left, before = s.rank - 2; /* which dim of the rows is summed */
    for (int d = 0; d < rank; d++) rows[d] = (char)('b' + d);
    for (int d = 0; d < before; d++) of[d] = rows[rank - 2 - before + d];
    const int at = before > 0 ? before : 0;
    if (s.rank > 1) of[at + !left] = 'Z';
    of[s.rank > 1 ? at + left : 0] = rows[over];
    int n = 0;
    for (int d = 0; d < rank; d++)
        if (d != over || s.rank > 1) out[n++] = d == over ? 'Z' : rows[d];
    snprintf(text, sizeof text, "a%s,%s->a%s", rows, of, out);
    return keel_emit_einsum(e, text, in, 2);
}

static keel_status emit(keel_emit *e)
{
    const json_t *first = keel_argument(e, 0, "x1"), *second = keel_argument(e, 1, "x2");
    if (json_is_array(first)) return with_array(e, first, true);
    return json_is_array(second) ? with_array(e, second, false) : of_values(e);
}

KEEL_PLAIN_OPERATION(ops_matmul, "Matmul", "numpy", 2, "Products of the matrices of each row.",
                     .whole = KEEL_WHOLE_KEPT)
