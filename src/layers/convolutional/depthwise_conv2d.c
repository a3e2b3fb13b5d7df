/* Each channel of [H, W, C] has its own windows. kernel: [h, w, C, depth_multiplier]; the outputs
 * of channel c are c * depth_multiplier and those that follow. */
#include "layers/convolutional/_depthwise.h"

static const keel_field fields[] = {
    KEEL_DEPTHWISE_FIELDS(2, "[1, 1]"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_depthwise(e, 2);
}

const keel_layer keel_layer_depthwise_conv2d = {
    .type = { KEEL_LAYER_HEAD("DepthwiseConv2D", "2D convolution of each channel by itself."),
              .args_size = sizeof(keel_depthwise), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
