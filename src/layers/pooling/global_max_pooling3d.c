/* The largest of each channel of [D, H, W, C]: [C], or [1, 1, 1, C] with keepdims. */
#include "layers/pooling/_global_max.h"

static keel_status emit(keel_emit *e)
{
    return keel_emit_global_max(e, 3);
}

const keel_layer keel_layer_global_max_pooling3d = {
    .type = { KEEL_LAYER_HEAD("GlobalMaxPooling3D", "The largest value of each channel."),
              .args_size = sizeof(keel_global_max), .fields = keel_global_max_fields },
    .aliases = "GlobalMaxPool3D",
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
