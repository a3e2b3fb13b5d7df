/* Passes its input on. */
#include "layers/layer.h"

static keel_status emit(keel_emit *e)
{
    e->out[0] = e->in[0];
    return KEEL_OK;
}

const keel_layer keel_layer_identity = {
    .type = { KEEL_LAYER_HEAD("Identity", "Gives its input as it is.") },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .last_dim = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
