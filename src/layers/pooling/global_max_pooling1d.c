/* The largest of each channel of [T, C]: [C], or [1, C] with keepdims. */
#include "layers/pooling/_global_max.h"

static keel_status emit(keel_emit *e)
{
    return keel_emit_global_max(e, 1);
}

const keel_layer keel_layer_global_max_pooling1d = {
    .type = { KEEL_LAYER_HEAD("GlobalMaxPooling1D", "The largest value of each channel."),
              .args_size = sizeof(keel_global_max), .fields = keel_global_max_fields },
    .aliases = "GlobalMaxPool1D",
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
