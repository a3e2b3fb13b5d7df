/* Matrices as orthonormal columns times a triangle. */
#include "layers/operations/_values.h"

enum { REDUCED, COMPLETE };

typedef struct args_t {
    int mode;
} args_t;

static const keel_field fields[] = {
    KEEL_CHOICE(args_t, mode, "\"reduced\"", "reduced|complete",
                "complete: as many columns as rows, of square matrices the same"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    keel_value x;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    if (((const args_t *)e->args)->mode == COMPLETE && in.rank > 1 &&
        in.dim[in.rank - 2] > in.dim[in.rank - 1])
        return keel_fail(KEEL_EUNSUP, "mode 'complete' of matrices with more rows than columns: "
                                      "Keras on TensorFlow has no gradient of it");
    KEEL_TRY(keel_emit_each(e, &keel_op_qr, e->in[0], &x));
    const int64_t m = in.dim[in.rank - 2], n = in.dim[in.rank - 1];
    KEEL_TRY(keel_emit_outputs(e, 2));
    KEEL_TRY(keel_emit_part(e, x, in.rank - 2, 0, m, &e->out[0]));
    return keel_emit_part(e, x, in.rank - 2, m, n, &e->out[1]);
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
