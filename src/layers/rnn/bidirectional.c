/* Two layers over the same steps, one forwards and one backwards, whose outputs are merged. */
#include "layers/rnn/_cell.h"

typedef struct args_t {
    int merge_mode;
} args_t;

enum { CONCAT, SUM, MUL, AVE, APART = -1, OUTS_MAX = 1 + KEEL_STATES_MAX };

static const keel_field fields[] = {
    KEEL_CHOICE_OR_NULL(args_t, merge_mode, "\"concat\"", "concat|sum|mul|ave",
                        "how the two outputs become one; null: they stay two"),
    KEEL_IGNORE("layer", "the layer that goes forwards"),
    KEEL_IGNORE("backward_layer", "the layer that goes backwards"),
    KEEL_REFUSE("weights", "null", "Keras leaves it out of files"),
    { 0 },
};

static keel_status one_way(keel_emit *e, const char *key, int half, keel_value *out, int *n_out)
{
    static const bool both_ways = true;
    const int n = (e->n_in - 1) / 2; /* states */
    keel_value in[OUTS_MAX] = { e->in[0] }, mask[OUTS_MAX] = { keel_rnn_mask(e) };
    const keel_layer *kind = e->sub_kind(e, key);
    if (!kind || !kind->takes_states)
        return keel_fail(KEEL_EUNSUP, "a %s cannot go both ways", kind ? kind->type.name : "model");
    for (int i = 0; i < n; i++) {
        in[1 + i] = e->in[1 + half * n + i];
        mask[1 + i] = KEEL_MASK_NONE;
    }
    const keel_call_of call = { in, mask, 1 + n, &both_ways };
    *n_out = OUTS_MAX;
    return e->sub_outs(e, key, &call, out, n_out);
}

static keel_status merge(keel_emit *e, int mode, const keel_value pair[2], keel_value *out)
{
    static const keel_axis_args last = { .axis = -1 };
    static const keel_rescaling_args half = { .scale = 0.5 };
    if (mode == CONCAT) return keel_emit_on(e, &keel_op_concatenate, &last, pair, 2, out);
    KEEL_TRY(keel_emit_on(e, mode == MUL ? &keel_op_multiply : &keel_op_add, NULL, pair, 2, out));
    return mode == AVE ? keel_emit_on(e, &keel_op_rescaling, &half, out, 1, out) : KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const int mode = ((const args_t *)e->args)->merge_mode, apart = mode == APART;
    keel_value y[2][OUTS_MAX];
    int n[2];
    if (e->n_in % 2 == 0) return keel_fail(KEEL_EARG, "initial_state: half of it for each way");
    KEEL_TRY(one_way(e, "forward_layer", 0, y[0], &n[0]));
    KEEL_TRY(one_way(e, "backward_layer", 1, y[1], &n[1]));
    const int rank = keel_graph_spec(e->graph, y[0][0])->shape.rank;
    if (n[0] != n[1] || rank != keel_graph_spec(e->graph, y[1][0])->shape.rank)
        return keel_fail(KEEL_EARG, "the two layers must return the same, states and sequences");
    const bool sequences = rank == keel_emit_in(e, 0)->shape.rank;
    keel_value pair[2] = { y[0][0], y[1][0] };
    if (sequences) KEEL_TRY(keel_emit_reversed(e, pair[1], 0, &pair[1])); /* steps as they came */
    if (!apart) KEEL_TRY(merge(e, mode, pair, &pair[0]));
    KEEL_TRY(keel_emit_outputs(e, 1 + apart + 2 * (n[0] - 1)));
    for (int k = 0; k < e->n_out; k++)
        e->out_mask[k] = sequences && k <= apart ? e->mask[0] : KEEL_MASK_NONE;
    for (int i = 0; i <= apart; i++) e->out[i] = pair[i];
    for (int i = 0, k = 1 + apart; i < 2; i++)
        for (int s = 1; s < n[i]; s++) e->out[k++] = y[i][s];
    return KEEL_OK;
}

const keel_layer keel_layer_bidirectional = {
    .type = { KEEL_LAYER_HEAD("Bidirectional", "Goes through time both ways."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1 + 2 * KEEL_STATES_MAX,
    .supports_masking = true,
    .mask_argument = true,
    .takes_states = true,
    .held = (const char *const[]){ "layer", "backward_layer", NULL },
    .held_as = (const char *const[]){ "forward_layer", "backward_layer", NULL },
    .emit = emit,
};
