/* The cell of LSTM: its weights and one step, see lstm.c. */
#include "layers/rnn/_cell.h"

static const keel_field fields[] = {
    KEEL_CELL_FIELDS, KEEL_GATE_FIELDS, KEEL_FORGET_FIELDS, { 0 }
};

static keel_status emit(keel_emit *e)
{
    return keel_cell_emit(e, &keel_op_lstm, 4, 2);
}

const keel_layer keel_layer_lstm_cell = {
    .type = { KEEL_LAYER_HEAD("LSTMCell", "One step of LSTM, for RNN."),
              .args_size = sizeof(keel_cell_args), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 3,
    .by_chance = true,
    .cell = true,
    .emit = emit,
};
