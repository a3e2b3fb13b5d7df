/* Zeros in the shape of a value. */
#include "layers/operations/_like.h"

static keel_status emit(keel_emit *e)
{
    return emit_like(e, 0);
}

const keel_layer keel_layer_ops_zeros_like = {
    .type = { KEEL_OPERATION_HEAD("ZerosLike", "numpy", "As many zeros as a value has numbers."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
