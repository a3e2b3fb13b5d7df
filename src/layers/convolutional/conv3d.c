/* 3D convolution (cross-correlation) over [D, H, W, C]. kernel: [d, h, w, C / groups, filters]. */
#include "layers/convolutional/_conv.h"

static const keel_field fields[] = { KEEL_CONV_FIELDS(3, "[1, 1, 1]", "valid|same"), { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_emit_conv(e, 3);
}

const keel_layer keel_layer_conv3d = {
    .type = { KEEL_LAYER_HEAD("Conv3D", "3D convolution over volumes."),
              .args_size = sizeof(keel_conv), .fields = fields },
    .aliases = "Convolution3D",
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
    .to_config = keel_conv_config,
    .low_rank = keel_conv_low_rank,
};
