/* 2D convolution (cross-correlation) over [H, W, C]. kernel: [h, w, C / groups, filters]. */
#include "layers/convolutional/_conv.h"

static const keel_field fields[] = { KEEL_CONV_FIELDS(2, "[1, 1]", "valid|same"), { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_emit_conv(e, 2);
}

const keel_layer keel_layer_conv2d = {
    .type = { KEEL_LAYER_HEAD("Conv2D", "2D convolution over images."),
              .args_size = sizeof(keel_conv), .fields = fields },
    .aliases = "Convolution2D",
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
    .to_config = keel_conv_config,
    .low_rank = keel_conv_low_rank,
};
