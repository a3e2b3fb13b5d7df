/* Ones in the shape of a value. */
#include "layers/operations/_like.h"

static keel_status emit(keel_emit *e)
{
    return emit_like(e, 1);
}

const keel_layer keel_layer_ops_ones_like = {
    .type = { KEEL_OPERATION_HEAD("OnesLike", "numpy", "As many ones as a value has numbers."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
