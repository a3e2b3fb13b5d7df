/* Runs any cell over the steps of [T, C], as LSTM runs LSTMCell. */
#include "layers/rnn/_cell.h"

static const keel_field fields[] = {
    KEEL_IGNORE("cell", "what makes one step"),
    KEEL_RNN_FIELDS,
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_layer *kind = e->sub_kind(e, "cell");
    if (!kind || !kind->cell)
        return keel_fail(KEEL_EUNSUP, "a %s is no cell that goes through time",
                         kind ? kind->type.name : "model");
    return keel_rnn_emit(e);
}

const keel_layer keel_layer_rnn = {
    .type = { KEEL_LAYER_HEAD("RNN", "Calls a cell on one step after the other."),
              .args_size = sizeof(keel_rnn_args), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1 + KEEL_STATES_MAX,
    .supports_masking = true,
    .mask_argument = true,
    .takes_states = true,
    .held = (const char *const[]){ "cell", NULL },
    .emit = emit,
};
