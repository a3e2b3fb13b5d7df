/* Sums over the last dims of a value and of an array. */
#include "layers/operations/_einsum.h"

static keel_status emit(keel_emit *e)
{
    const int64_t last = -1;
    return keel_emit_contraction(e, 1, &last, &last);
}

const keel_layer keel_layer_ops_inner = {
    .type = { KEEL_OPERATION_HEAD("Inner", "numpy",
                                  "Sums over the last dims of a value and of an array.") },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
