/* Products of matrices. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    return keel_emit_one(e, &keel_op_matmul, NULL);
}

const keel_layer keel_layer_ops_matmul = {
    .type = { KEEL_OPERATION_HEAD("Matmul", "numpy", "Products of the matrices of each row.") },
    .min_inputs = 2,
    .max_inputs = 2,
    .operation = true,
    .emit = emit,
};
