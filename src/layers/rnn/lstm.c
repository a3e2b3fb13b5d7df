/* LSTM over the steps of [T, C]: a state and a carry, with gates for what enters, stays and leaves.
 */
#include "layers/rnn/_cell.h"

static const keel_field fields[] = {
    KEEL_RNN_FIELDS, KEEL_CELL_FIELDS, KEEL_GATE_FIELDS, KEEL_FORGET_FIELDS, { 0 }
};

static keel_status make(keel_emit *e)
{
    return keel_rnn_make(e, "LSTMCell", "lstm_cell");
}

const keel_layer keel_layer_lstm = {
    .type = { KEEL_LAYER_HEAD("LSTM", "Goes through time with a state and a carry (LSTM)."),
              .args_size = sizeof(keel_rnn_args), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 3,
    .supports_masking = true,
    .mask_argument = true,
    .takes_states = true,
    .make = make,
    .emit = keel_rnn_emit,
};
