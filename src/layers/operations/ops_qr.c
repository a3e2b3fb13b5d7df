/* Matrices as orthonormal columns times a triangle. */
#include "layers/operations/_values.h"

static const keel_field fields[] = {
    KEEL_REFUSE("mode", "\"reduced\"", "more columns than the matrix has"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    keel_value x;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    KEEL_TRY(keel_emit_each(e, &keel_op_qr, e->in[0], &x));
    const int64_t m = in.dim[in.rank - 2], n = in.dim[in.rank - 1];
    KEEL_TRY(keel_emit_outputs(e, 2));
    KEEL_TRY(keel_emit_part(e, x, in.rank - 2, 0, m, &e->out[0]));
    return keel_emit_part(e, x, in.rank - 2, m, n, &e->out[1]);
}

const keel_layer keel_layer_ops_qr = {
    .type = { KEEL_OPERATION_HEAD("Qr", "linalg",
                                  "Matrices as orthonormal columns times a triangle."),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
