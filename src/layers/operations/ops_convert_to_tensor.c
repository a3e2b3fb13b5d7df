/* The same numbers: Keras's attention writes it where it passes a mask on. */
#include "layers/operations/_operation.h"

static const keel_field fields[] = {
    KEEL_REFUSE("dtype", "null", "numbers of another type"),
    KEEL_REFUSE("sparse", "null", "a sparse tensor"),
    KEEL_REFUSE("ragged", "null", "a ragged tensor"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    e->out[0] = e->in[0];
    return KEEL_OK;
}

const keel_layer keel_layer_ops_convert_to_tensor = {
    .type = { KEEL_OPERATION_HEAD("ConvertToTensor", "core", "The same numbers."),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
