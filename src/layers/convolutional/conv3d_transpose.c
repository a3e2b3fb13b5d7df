/* Transposed 3D convolution over [D, H, W, C], as if its output had been convolved. kernel: [d, h,
 * w, filters, C]. */
#include "layers/convolutional/_conv_transpose.h"

static const keel_field fields[] = {
    KEEL_CONV_TRANSPOSED_FIELDS(3, "[1, 1, 1]"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_conv_transpose(e, 3);
}

const keel_layer keel_layer_conv3d_transpose = {
    .type = { KEEL_LAYER_HEAD("Conv3DTranspose", "Transposed 3D convolution over volumes."),
              .args_size = sizeof(keel_conv_transposed), .fields = fields },
    .aliases = "Convolution3DTranspose",
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
