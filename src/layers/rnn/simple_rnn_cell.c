/* The cell of SimpleRNN: its weights and one step, see simple_rnn.c. */
#include "layers/rnn/_cell.h"

static const keel_field fields[] = { KEEL_CELL_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_cell_emit(e, &keel_op_simple_rnn, 1, 1);
}

const keel_layer keel_layer_simple_rnn_cell = {
    .type = { KEEL_LAYER_HEAD("SimpleRNNCell", "One step of SimpleRNN, for RNN."),
              .args_size = sizeof(keel_cell_args), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 2,
    .by_chance = true,
    .cell = true,
    .emit = emit,
};
