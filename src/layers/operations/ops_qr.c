/* Matrices as orthonormal columns times a triangle. Of a matrix with more columns than rows, Q is
 * that of its first columns, A, and R is beside their triangle what Q^T makes of the others, B:
 * Q [R, Q^T B] = [A, B]. */
#include "layers/operations/_values.h"
#include "ops/qr.h"

enum { REDUCED, COMPLETE };

typedef struct args_t {
    int mode;
} args_t;

static const keel_field fields[] = {
    KEEL_CHOICE(args_t, mode, "\"reduced\"", "reduced|complete",
                "complete: as many columns as rows"),
    { 0 },
};

static keel_status others(keel_emit *e, keel_value q, keel_value b, keel_value *r)
{
    const int rank = keel_value_shape(e, q)->rank;
    const keel_axis_args last = { .axis = rank - 1 };
    keel_value product[2], beside[2] = { *r };
    product[1] = b;
    KEEL_TRY(keel_emit_two_last(e, q, rank - 1, rank - 2, &product[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, product, 2, &beside[1]));
    return keel_emit_on(e, &keel_op_concatenate, &last, beside, 2, r);
}

static keel_status emit(keel_emit *e)
{
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const int last = in.rank - 1;
    if (in.rank < 2) return keel_fail(KEEL_ESHAPE, "rows must be matrices");
    const int64_t m = in.dim[last - 1], n = in.dim[last], first = n < m ? n : m;
    const keel_qr_args op = { .complete = m > n && ((const args_t *)e->args)->mode == COMPLETE };
    const int64_t columns = op.complete ? m : first;
    keel_value a = e->in[0], b = a, x, q, r;
    if (n > m) {
        KEEL_TRY(keel_emit_part(e, e->in[0], last, 0, m, &a));
        KEEL_TRY(keel_emit_part(e, e->in[0], last, m, n - m, &b));
    }
    KEEL_TRY(keel_emit_on(e, &keel_op_qr, &op, &a, 1, &x));
    KEEL_TRY(keel_emit_outputs(e, 2));
    KEEL_TRY(keel_emit_part(e, x, last, 0, columns, &q));
    KEEL_TRY(keel_emit_part(e, x, last, columns, first, &r));
    if (!op.complete && m > n) KEEL_TRY(keel_emit_part(e, r, last - 1, 0, n, &r));
    if (n > m) KEEL_TRY(others(e, q, b, &r));
    e->out[0] = q;
    e->out[1] = r;
    return KEEL_OK;
}

const keel_layer keel_layer_ops_qr = {
    .type = { KEEL_OPERATION_HEAD("Qr", "linalg",
                                  "Matrices as orthonormal columns times a triangle."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
