/* A state over the steps of [T, C], computed from the input and the previous state. */
#include "layers/rnn/_cell.h"

static const keel_field fields[] = { KEEL_RNN_FIELDS, KEEL_CELL_FIELDS, { 0 } };

static keel_status make(keel_emit *e)
{
    return keel_rnn_make(e, "SimpleRNNCell", "simple_rnn_cell");
}

const keel_layer keel_layer_simple_rnn = {
    .type = { KEEL_LAYER_HEAD("SimpleRNN", "Goes through time with a plain state."),
              .args_size = sizeof(keel_rnn_args), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 2,
    .supports_masking = true,
    .mask_argument = true,
    .takes_states = true,
    .make = make,
    .emit = keel_rnn_emit,
};
