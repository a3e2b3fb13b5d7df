/* An LSTM over steps of 1D places, [T, 1 dims, C], with convolutions for products. */
#include "layers/rnn/_conv_lstm.h"

static const keel_field fields[] = { KEEL_CONV_LSTM_FIELDS(1, "[1]"), { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_conv_lstm_emit(e, 1);
}

const keel_layer keel_layer_conv_lstm1d = {
    .type = { KEEL_LAYER_HEAD("ConvLSTM1D", "LSTM with 1D convolutions."),
              .args_size = sizeof(keel_conv_lstm_args), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 3,
    .by_chance = true,
    .supports_masking = true,
    .mask_argument = true,
    .takes_states = true,
    .weights_in = "cell",
    .emit = emit,
};
