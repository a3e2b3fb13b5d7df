/* See _cell.h. */
#include "layers/rnn/_cell.h"
#include "base/memory.h"
#include <string.h>

enum { STATES_OF_CELL = 2 };

/* ---- the bias of an LSTM --------------------------------------------------------------------- */

static const keel_field forget_fields[] = {
    KEEL_OBJECT(keel_forget_args, around, "\"zeros\"", keel_initializer_find, "of the other gates"),
    { 0 },
};

/* Fills [4 U], the gates i, f, g, o: ones for f, the other initializer elsewhere. */
static keel_status fill_forget(const void *args, const keel_shape *shape, const keel_chance *c,
                               uint64_t row, double *out)
{
    const keel_object *around = &((const keel_forget_args *)args)->around;
    const keel_initializer *init = (const keel_initializer *)around->type;
    const int64_t units = shape->dim[0] / 4;
    const keel_shape one = KEEL_SHAPE(units), two = KEEL_SHAPE(2 * units);
    keel_chance other = *c; /* draws of its own */
    other.epoch++;
    KEEL_TRY(init->fill(around->args, &one, c, row, out));
    for (int64_t i = units; i < 2 * units; i++) out[i] = 1;
    return init->fill(around->args, &two, &other, row, out + 2 * units);
}

const keel_initializer keel_unit_forget = {
    .type = { .name = "UnitForgetBias",
              .help = "ones for the forget gate",
              .args_size = sizeof(keel_forget_args),
              .fields = forget_fields },
    .fill = fill_forget,
};

/* ---- the cell -------------------------------------------------------------------------------- */

static keel_status declare(keel_emit *e, int gates, int64_t inputs, keel_weights *w)
{
    const keel_cell_args *a = e->args;
    const int64_t width = gates * a->units;
    keel_forget_args around = { a->bias_initializer };
    const keel_object forget = { &keel_unit_forget.type, &around };
    const keel_weight_decl kernel = { .name = "kernel",
                                      .shape = KEEL_SHAPE(inputs, width),
                                      .initializer = &a->kernel_initializer,
                                      .regularizer = &a->kernel_regularizer,
                                      .constraint = &a->kernel_constraint };
    const keel_weight_decl recurrent = { .name = "recurrent_kernel",
                                         .shape = KEEL_SHAPE(a->units, width),
                                         .initializer = &a->recurrent_initializer,
                                         .regularizer = &a->recurrent_regularizer,
                                         .constraint = &a->recurrent_constraint };
    const keel_weight_decl bias = { .name = "bias",
                                    .shape =
                                        a->reset_after ? KEEL_SHAPE(2, width) : KEEL_SHAPE(width),
                                    .initializer =
                                        a->unit_forget_bias ? &forget : &a->bias_initializer,
                                    .regularizer = &a->bias_regularizer,
                                    .constraint = &a->bias_constraint };
    KEEL_TRY(keel_emit_weight(e, &kernel, w));
    KEEL_TRY(keel_emit_weight(e, &recurrent, w));
    return a->use_bias ? keel_emit_weight(e, &bias, w) : KEEL_OK;
}

static bool drops(const keel_emit *e, double rate) /* as in Keras, a rate of 1 drops nothing */
{
    return e->training && rate > 0 && rate < 1;
}

/* Multiplies the inputs of all steps by one dropout mask. */
static keel_status drop_inputs(keel_emit *e, keel_value *x)
{
    const keel_cell_args *a = e->args;
    const keel_dropout_args op = { .rate = a->dropout,
                                   .noise =
                                       KEEL_SHAPE(1, keel_graph_spec(e->graph, *x)->shape.dim[1]) };
    return drops(e, a->dropout) ? keel_emit_on(e, &keel_op_dropout, &op, x, 1, x) : KEEL_OK;
}

/* The factors of the state for each gate: a dropout of ones. */
static keel_status kept_of_state(keel_emit *e, int gates, keel_value z, keel_value *out)
{
    static const keel_where_args ones = { .fixed = { true, true }, .constant = { 1, 1 } };
    const keel_cell_args *a = e->args;
    const keel_slice_args first = { .step = { 1, 1 }, .count = { 1, gates * a->units } };
    const keel_reshape_args as = { .shape = KEEL_SHAPE(gates, a->units) };
    const keel_dropout_args op = { .rate = a->recurrent_dropout, .first = KEEL_DRAW_OF_STATE };
    KEEL_TRY(keel_emit_on(e, &keel_op_slice, &first, &z, 1, out));
    KEEL_TRY(keel_emit_on(e, &keel_op_reshape, &as, out, 1, out));
    KEEL_TRY(keel_emit_on(e, &keel_op_where, &ones, out, 1, out));
    return keel_emit_on(e, &keel_op_dropout, &op, out, 1, out);
}

static keel_status gate_of(const keel_object *activation, keel_gate *out)
{
    const keel_activation *a = (const keel_activation *)activation->type;
    *out = (keel_gate){ 0 };
    if (!a || !a->op) return KEEL_OK;
    const void *args = a->op_args ? a->op_args : a->type.args_size ? activation->args : NULL;
    if (a->op->args_size > sizeof out->args)
        return keel_fail(KEEL_EUNSUP, "activation %s cannot be a gate's", a->type.name);
    out->op = a->op;
    if (args) memcpy(out->args, args, a->op->args_size);
    return KEEL_OK;
}

/* The states with which rows begin, if those of the step before go on. */
static keel_status begin_states(keel_emit *e, int states, keel_value *begin, keel_value *feed)
{
    const keel_cell_args *a = e->args;
    const keel_shape shape = KEEL_SHAPE(a->units);
    for (int k = 0; k < states; k++) {
        KEEL_TRY(keel_graph_carry(e->graph, &shape, k, &begin[k]));
        KEEL_TRY(keel_graph_cast(e->graph, begin[k], e->graph->held, &feed[k]));
    }
    return KEEL_OK;
}

keel_status keel_cell_emit(keel_emit *e, const keel_op *op, int gates, int states)
{
    const keel_cell_args *a = e->args;
    const keel_over_time *how = e->how;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_value x = e->in[0], feed[3 + STATES_OF_CELL], begin[STATES_OF_CELL];
    keel_value out[1 + STATES_OF_CELL];
    keel_weights w = { 0 };
    int n = 1;
    if (!how) return keel_fail(KEEL_EUNSUP, "a cell cannot be called by itself: use RNN");
    if (in->rank != 2) return keel_fail(KEEL_ESHAPE, "expected rows of (time, features)");
    if (e->n_in != 1 && e->n_in != 1 + states)
        return keel_fail(KEEL_EARG, "initial_state: %d, there are %d states", e->n_in - 1, states);
    if (e->activity->type)
        return keel_fail(KEEL_EUNSUP, "activity_regularizer of a cell is not supported");
    const bool goes_on = how->stateful && e->n_in == 1;
    KEEL_TRY(declare(e, gates, in->dim[1], &w));
    keel_recurrent_args op_args = { .masked = e->mask[0] >= 0,
                                    .stated = e->n_in > 1 || goes_on,
                                    .dropped = drops(e, a->recurrent_dropout),
                                    .sequences = how->sequences,
                                    .states = how->states || goes_on,
                                    .backwards = how->backwards,
                                    .zeros = how->zeros,
                                    .reset_after = a->reset_after };
    KEEL_TRY(gate_of(&a->activation, &op_args.activation));
    KEEL_TRY(gate_of(&a->recurrent_activation, &op_args.recurrent));
    KEEL_TRY(drop_inputs(e, &x));
    /* a bias with two rows belongs to the op */
    const bool own_bias = w.n > 2 && w.spec[2].shape.rank > 1;
    const keel_weights dense = { .n = w.n > 2 && !own_bias ? 2 : 1,
                                 .of = { w.of[0], w.of[2] },
                                 .spec = { w.spec[0], w.spec[2] } };
    KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, x, &dense, &feed[0]));
    if (op_args.masked) KEEL_TRY(keel_graph_cast(e->graph, e->mask[0], e->graph->held, &feed[n++]));
    for (int i = 1; i < e->n_in; i++) feed[n++] = e->in[i];
    if (goes_on) {
        KEEL_TRY(begin_states(e, states, begin, feed + n));
        n += states;
    }
    if (op_args.dropped) KEEL_TRY(kept_of_state(e, gates, feed[0], &feed[n++]));
    const keel_node_parts recurrent = { .op = op,
                                        .args = &op_args,
                                        .n_in = n,
                                        .in = feed,
                                        .n_weight = own_bias ? 2 : 1,
                                        .weight = w.of + 1,
                                        .weight_spec = w.spec + 1 };
    KEEL_TRY(keel_emit_outputs(e, 1 + (how->states ? states : 0)));
    KEEL_TRY(keel_graph_add(e->graph, &recurrent, out, 1 + (op_args.states ? states : 0)));
    memcpy(e->out, out, (size_t)e->n_out * sizeof *out);
    for (int k = 0; goes_on && k < states; k++)
        KEEL_TRY(keel_graph_carry_end(e->graph, begin[k], out[1 + k]));
    return KEEL_OK;
}

/* ---- the layer ------------------------------------------------------------------------------- */

keel_status keel_rnn_make(keel_emit *e, const char *class_name, const char *name)
{
    const keel_layer *kind = keel_layer_find(class_name);
    json_t *config = keel_fields_json(&kind->type, e->args);
    if (config && json_object_set_new(config, "name", json_string(name))) {
        json_decref(config);
        config = NULL;
    }
    return e->make(e, "cell", class_name, config);
}

keel_value keel_rnn_mask(const keel_emit *e)
{
    return e->n_in > 1 && !e->mask_said ? KEEL_MASK_NONE : e->mask[0];
}

keel_status keel_rnn_emit(keel_emit *e)
{
    const keel_rnn_args *a = e->args;
    const keel_over_time how = { .sequences = a->return_sequences,
                                 .states = a->return_state,
                                 .backwards = a->go_backwards,
                                 .stateful = a->stateful,
                                 /* of Bidirectional, as it is there */
                                 .zeros = e->how ? a->return_sequences : a->zero_output_for_mask };
    keel_value mask[1 + KEEL_STATES_MAX], out[1 + KEEL_STATES_MAX];
    const keel_call_of call = { e->in, mask, e->n_in, &how };
    int n = 1 + KEEL_STATES_MAX;
    mask[0] = keel_rnn_mask(e);
    for (int i = 1; i < e->n_in; i++) mask[i] = KEEL_MASK_NONE;
    KEEL_TRY(e->sub_outs(e, "cell", &call, out, &n));
    KEEL_TRY(keel_emit_outputs(e, n));
    for (int i = 0; i < n; i++) e->out[i] = out[i];
    for (int i = 0; i < n; i++)
        e->out_mask[i] = i == 0 && a->return_sequences ? e->mask[0] : KEEL_MASK_NONE;
    return KEEL_OK;
}
