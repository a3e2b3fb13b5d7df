/* GRU over the steps of [T, C]: a state, with gates for what is kept and for what the new state
 * sees of the old one. */
#include "layers/rnn/_cell.h"

static const keel_field fields[] = {
    KEEL_RNN_FIELDS, KEEL_CELL_FIELDS, KEEL_GATE_FIELDS, KEEL_RESET_FIELDS, { 0 }
};

static keel_status make(keel_emit *e)
{
    return keel_rnn_make(e, "GRUCell", "gru_cell");
}

const keel_layer keel_layer_gru = {
    .type = { KEEL_LAYER_HEAD("GRU", "Goes through time with a gated state (GRU)."),
              .args_size = sizeof(keel_rnn_args), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 2,
    .supports_masking = true,
    .mask_argument = true,
    .takes_states = true,
    .make = make,
    .emit = keel_rnn_emit,
};
