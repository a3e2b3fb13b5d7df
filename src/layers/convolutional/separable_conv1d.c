/* Windows over each channel of [T, C], then one place of all channels. depthwise_kernel:
 * [t, C, depth_multiplier], pointwise_kernel: [1, C depth_multiplier, filters]. */
#include "layers/convolutional/_depthwise.h"

static const keel_field fields[] = {
    KEEL_SEPARABLE_FIELDS(1, "[1]"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_separable(e, 1);
}

const keel_layer keel_layer_separable_conv1d = {
    .type = { KEEL_LAYER_HEAD("SeparableConv1D",
                              "1D convolution of each channel, then of all channels."),
              .args_size = sizeof(keel_depthwise), .fields = fields },
    .aliases = "SeparableConvolution1D",
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
