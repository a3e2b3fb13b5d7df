/* 1D convolution (cross-correlation) over [T, C]. kernel: [t, C / groups, filters]. */
#include "layers/convolutional/_conv.h"

static const keel_field fields[] = { KEEL_CONV_FIELDS(1, "[1]", "valid|same|causal"), { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_emit_conv(e, 1);
}

const keel_layer keel_layer_conv1d = {
    .type = { KEEL_LAYER_HEAD("Conv1D", "1D convolution over steps."),
              .args_size = sizeof(keel_conv), .fields = fields },
    .aliases = "Convolution1D",
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
    .to_config = keel_conv_config,
    .low_rank = keel_conv_low_rank,
};
