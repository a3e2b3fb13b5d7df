/* The mean of each of output_size windows over [D, H, W, C]. */
#include "layers/pooling/_adaptive.h"

static const keel_field fields[] = { KEEL_ADAPTIVE_FIELDS(3), { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_emit_adaptive(e, 3, false);
}

const keel_layer keel_layer_adaptive_average_pooling3d = {
    .type = { .name = "AdaptiveAveragePooling3D",
              .module = "keras.layers",
              .help = "The mean of each of a given number of windows.",
              .args_size = sizeof(keel_adaptive),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
