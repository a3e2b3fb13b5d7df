/* Each channel of [T, C] has its own windows. kernel: [t, C, depth_multiplier]; the outputs
 * of channel c are c * depth_multiplier and those that follow. */
#include "layers/convolutional/_depthwise.h"

static const keel_field fields[] = {
    KEEL_DEPTHWISE_FIELDS(1, "[1]"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_depthwise(e, 1);
}

const keel_layer keel_layer_depthwise_conv1d = {
    .type = { KEEL_LAYER_HEAD("DepthwiseConv1D", "1D convolution of each channel by itself."),
              .args_size = sizeof(keel_depthwise), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
