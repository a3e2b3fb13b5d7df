/* Transposed 1D convolution over [T, C], as if its output had been convolved. kernel: [t, filters,
 * C]. */
#include "layers/convolutional/_conv_transpose.h"

static const keel_field fields[] = {
    KEEL_CONV_TRANSPOSED_FIELDS(1, "[1]"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_conv_transpose(e, 1);
}

const keel_layer keel_layer_conv1d_transpose = {
    .type = { KEEL_LAYER_HEAD("Conv1DTranspose", "Transposed 1D convolution over steps."),
              .args_size = sizeof(keel_conv_transposed), .fields = fields },
    .aliases = "Convolution1DTranspose",
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
