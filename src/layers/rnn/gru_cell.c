/* The cell of GRU: its weights and one step, see gru.c. */
#include "layers/rnn/_cell.h"

static const keel_field fields[] = { KEEL_CELL_FIELDS, KEEL_GATE_FIELDS, KEEL_RESET_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_cell_emit(e, &keel_op_gru, 3, 1);
}

const keel_layer keel_layer_gru_cell = {
    .type = { KEEL_LAYER_HEAD("GRUCell", "One step of GRU, for RNN."),
              .args_size = sizeof(keel_cell_args), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 2,
    .by_chance = true,
    .cell = true,
    .emit = emit,
};
