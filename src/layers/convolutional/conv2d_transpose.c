/* Transposed 2D convolution over [H, W, C], as if its output had been convolved. kernel: [h, w,
 * filters, C]. */
#include "layers/convolutional/_conv_transpose.h"

static const keel_field fields[] = {
    KEEL_CONV_TRANSPOSED_FIELDS(2, "[1, 1]"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_conv_transpose(e, 2);
}

const keel_layer keel_layer_conv2d_transpose = {
    .type = { KEEL_LAYER_HEAD("Conv2DTranspose", "Transposed 2D convolution over images."),
              .args_size = sizeof(keel_conv_transposed), .fields = fields },
    .aliases = "Convolution2DTranspose",
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
