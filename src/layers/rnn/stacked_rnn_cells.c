/* Cells on top of each other, for RNN: at each step a cell takes the output of the one before it.
 * Each cell has its own states, so it runs over all steps before the next cell does. A masked step
 * keeps the states of all cells. */
#include "layers/rnn/_cell.h"

static const keel_field fields[] = {
    KEEL_IGNORE("cells", "what makes one step, one after another"),
    { 0 },
};

/* Runs cell k over all steps of *x, which becomes its output; its states go to `out`. */
static keel_status one_cell(keel_emit *e, int k, bool last, keel_value *x, keel_value mask,
                            int *given, keel_value *out, int *n_out)
{
    const keel_over_time *all = e->how;
    const keel_over_time how = { .sequences = !last || all->sequences,
                                 .states = all->states,
                                 .stateful = all->stateful,
                                 .backwards = k == 0 && all->backwards,
                                 .zeros = last && all->zeros };
    const keel_layer *kind = e->sub_kind(e, keel_held_in_list(k));
    keel_value in[1 + KEEL_STATES_MAX] = { *x }, masks[1 + KEEL_STATES_MAX] = { mask };
    keel_value made[1 + KEEL_STATES_MAX];
    int n = 1 + KEEL_STATES_MAX;
    if (!kind || !kind->cell || kind->held_list)
        return keel_fail(KEEL_EUNSUP, "cells %d: a %s is no cell that can be one of several", k,
                         kind ? kind->type.name : "model");
    const int states = e->n_in > 1 ? kind->max_inputs - 1 : 0;
    if (states > e->n_in - *given)
        return keel_fail(KEEL_EARG, "initial_state: %d are too few for the cells", e->n_in - 1);
    for (int i = 1; i <= states; i++) {
        in[i] = e->in[(*given)++];
        masks[i] = KEEL_MASK_NONE;
    }
    const keel_call_of call = { in, masks, 1 + states, &how };
    KEEL_TRY(e->sub_outs(e, keel_held_in_list(k), &call, made, &n));
    if (*n_out + n - 1 > 1 + KEEL_STATES_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d states", KEEL_STATES_MAX);
    *x = made[0];
    for (int i = 1; i < n; i++) out[(*n_out)++] = made[i];
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const keel_over_time *how = e->how;
    keel_value x = e->in[0], mask = e->mask[0], out[1 + KEEL_STATES_MAX];
    int given = 1, n_out = 1, cells = 0;
    if (!how) return keel_fail(KEEL_EUNSUP, "cells cannot be called by themselves: use RNN");
    while (cells < KEEL_HELD_IN_LIST_MAX && e->sub_kind(e, keel_held_in_list(cells))) cells++;
    for (int k = 0; k < cells; k++) {
        KEEL_TRY(one_cell(e, k, k == cells - 1, &x, mask, &given, out, &n_out));
        if (k == 0 && how->backwards && mask >= 0) /* into the order in which steps are taken */
            KEEL_TRY(keel_emit_reversed(e, mask, 0, &mask));
    }
    if (given < e->n_in)
        return keel_fail(KEEL_EARG, "initial_state: %d, there are %d states", e->n_in - 1,
                         given - 1);
    KEEL_TRY(keel_emit_outputs(e, n_out));
    e->out[0] = x;
    for (int i = 1; i < n_out; i++) e->out[i] = out[i];
    return KEEL_OK;
}

const keel_layer keel_layer_stacked_rnn_cells = {
    .type = { KEEL_LAYER_HEAD("StackedRNNCells",
                              "One step of several cells, one upon another, for RNN."),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1 + KEEL_STATES_MAX,
    .cell = true,
    .held_list = "cells",
    .emit = emit,
};
