/* See _conv_lstm.h. The convolutions of the input are one op for all steps, with time as one more
 * dim of places; where there are three already, they are one a step. Those of the state, and the
 * gates, are a few ops a step. The gates i, f, g, o are side by side, as in an LSTM:
 *
 *     c' = f c + i g        h' = o tanh(c') */
#include "layers/rnn/_conv_lstm.h"
#include "base/memory.h"
#include "layers/_turned.h"
#include "layers/operations/_values.h"

enum {
    SAME = 1,
    GATES = 4,
    STEPS_MAX = 1024,
    NODES_MAX = 1 << 18, /* calls inside of calls multiply */
};

typedef struct kernel {
    keel_weights w; /* and a bias */
    int64_t dim[5]; /* [size.., from, 4 filters] */
} kernel;

typedef struct lstm {
    int dims;
    keel_shape state; /* [places.., filters] */
    int64_t steps;
    kernel input, recurrent;
    keel_value x; /* the convolutions of all inputs, [T, places.., 4 filters]; with three dims the
                     input itself */
    keel_value h, c;     /* -1: zeros */
    keel_value kept;     /* of the state for each gate, [places.., 4 filters]; -1: all */
    keel_value begin[2]; /* states that go on from the step before; -1: none do */
    bool groups;         /* each gate has its own dropped input */
} lstm;

/* ---- weights --------------------------------------------------------------------------------- */

static keel_status declare(keel_emit *e, int dims, int64_t channels, lstm *l)
{
    const keel_conv_lstm_args *a = e->args;
    keel_forget_args around = { a->bias_initializer };
    const keel_object forget = { &keel_unit_forget.type, &around };
    keel_weight_decl d[2] = { { .name = "kernel",
                                .initializer = &a->kernel_initializer,
                                .regularizer = &a->kernel_regularizer,
                                .constraint = &a->kernel_constraint },
                              { .name = "recurrent_kernel",
                                .initializer = &a->recurrent_initializer,
                                .regularizer = &a->recurrent_regularizer,
                                .constraint = &a->recurrent_constraint } };
    const int64_t width = GATES * a->filters;
    if (a->filters > INT64_MAX / GATES)
        return keel_fail(KEEL_ESHAPE, "filters %lld are too many", (long long)a->filters);
    for (int i = 0; i < 2; i++) {
        kernel *k = i ? &l->recurrent : &l->input;
        d[i].shape.rank = dims + 2;
        for (int n = 0; n < dims; n++) k->dim[n] = a->kernel_size.at[n];
        k->dim[dims] = i ? a->filters : channels;
        k->dim[dims + 1] = width;
        for (int n = 0; n < dims + 2; n++) d[i].shape.dim[n] = k->dim[n];
        KEEL_TRY(keel_emit_weight(e, &d[i], &k->w));
    }
    const keel_weight_decl bias = { .name = "bias",
                                    .shape = KEEL_SHAPE(width),
                                    .initializer =
                                        a->unit_forget_bias ? &forget : &a->bias_initializer,
                                    .regularizer = &a->bias_regularizer,
                                    .constraint = &a->bias_constraint };
    return a->use_bias ? keel_emit_weight(e, &bias, &l->input.w) : KEEL_OK;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/* How the window of a convolution moves over its places, which may have fewer dims than those of
 * the op. */
typedef struct moves {
    keel_ints size, strides, dilation;
    bool same;
} moves;

/* Adds a dim of one place before the others (front) or after them. */
static void widen(keel_ints *a, bool front)
{
    for (int d = a->count; front && d > 0; d--) a->at[d] = a->at[d - 1];
    a->at[front ? 0 : a->count] = 1;
    a->count++;
}

static keel_status convolve(keel_emit *e, const kernel *k, moves m, int widened, int64_t groups,
                            keel_value x, keel_value *out)
{
    const keel_shape in = keel_graph_spec(e->graph, x)->shape;
    keel_conv2d_args image = { .groups = groups };
    keel_conv3d_args volume = { .groups = groups };
    keel_weights w = k->w;
    const int dims = m.size.count;
    for (int i = 0; widened && i < 3; i++)
        widen(i == 0 ? &m.size : i == 1 ? &m.strides : &m.dilation, widened < 0);
    const int all = m.size.count;
    keel_same_padding(&in, m.same, &m.size, &m.strides, &m.dilation,
                      all == 3 ? volume.pad : image.pad);
    for (int d = 0; d < all; d++) {
        *(all == 3 ? &volume.strides[d] : &image.strides[d]) = m.strides.at[d];
        *(all == 3 ? &volume.dilation[d] : &image.dilation[d]) = m.dilation.at[d];
        w.spec[0].shape.dim[d] = m.size.at[d];
    }
    w.spec[0].shape.rank = all + 2;
    w.spec[0].shape.dim[all] = k->dim[dims];
    w.spec[0].shape.dim[all + 1] = k->dim[dims + 1];
    return keel_emit_weighted(e, all == 3 ? &keel_op_conv3d : &keel_op_conv2d,
                              all == 3 ? (const void *)&volume : &image, x, &w, out);
}

/* Repeats *x along its channels, once for each gate. */
static keel_status each_gate(keel_emit *e, keel_value *x)
{
    static const keel_axis_args last = { .axis = -1 };
    const keel_value same[GATES] = { *x, *x, *x, *x };
    return keel_emit_on(e, &keel_op_concatenate, &last, same, GATES, x);
}

static moves of_input(const keel_conv_lstm_args *a)
{
    return (moves){ a->kernel_size, a->strides, a->dilation_rate, a->padding == SAME };
}

static moves of_state(const keel_conv_lstm_args *a)
{
    moves m = { .size = a->kernel_size, .same = true };
    m.strides.count = m.dilation.count = m.size.count;
    for (int d = 0; d < m.size.count; d++) m.strides.at[d] = m.dilation.at[d] = 1;
    return m;
}

static bool drops(const keel_emit *e, double rate) /* as in Keras, a rate of 1 drops nothing */
{
    return e->training && rate > 0 && rate < 1;
}

static keel_status drop_inputs(keel_emit *e, lstm *l)
{
    const keel_conv_lstm_args *a = e->args;
    keel_dropout_args op = { .rate = a->dropout };
    if (!drops(e, a->dropout)) return KEEL_OK;
    l->groups = true;
    KEEL_TRY(each_gate(e, &l->x));
    op.noise = keel_graph_spec(e->graph, l->x)->shape;
    op.noise.dim[0] = 1;
    return keel_emit_on(e, &keel_op_dropout, &op, &l->x, 1, &l->x);
}

/* The convolution of the input of step `time`, [places.., 4 filters]. */
static keel_status brought(keel_emit *e, const lstm *l, int64_t time, keel_value *out)
{
    KEEL_TRY(keel_emit_place(e, l->x, time, out));
    if (l->dims < 3) return KEEL_OK;
    return convolve(e, &l->input, of_input(e->args), 0, l->groups ? GATES : 1, *out, out);
}

/* Adds the convolution of the state. */
static keel_status add_state(keel_emit *e, const lstm *l, keel_value *z)
{
    static const keel_binary_args plain = { 0 };
    keel_value h = l->h, both[2] = { *z, -1 };
    if (h < 0) return KEEL_OK;
    if (l->kept >= 0) {
        KEEL_TRY(each_gate(e, &h));
        KEEL_TRY(keel_emit_on(e, &keel_op_multiply, &plain, (keel_value[]){ h, l->kept }, 2, &h));
    }
    if (l->dims == 1) {
        const keel_shape s = keel_graph_spec(e->graph, h)->shape;
        const keel_shape image = KEEL_SHAPE(s.dim[0], 1, s.dim[1]);
        KEEL_TRY(keel_emit_view(e, &image, h, &h));
    }
    KEEL_TRY(convolve(e, &l->recurrent, of_state(e->args), l->dims == 1, l->kept >= 0 ? GATES : 1,
                      h, &both[1]));
    KEEL_TRY(keel_emit_view(e, &keel_graph_spec(e->graph, *z)->shape, both[1], &both[1]));
    return keel_emit_on(e, &keel_op_add, NULL, both, 2, z);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A constant in the shape of `like`. */
static keel_status constant(keel_emit *e, double number, keel_value like, keel_value *out)
{
    const keel_where_args op = { .fixed = { true, true }, .constant = { number, number } };
    return keel_emit_on(e, &keel_op_where, &op, &like, 1, out);
}

static keel_status gate(keel_emit *e, keel_value z, int which, keel_value *out)
{
    const keel_conv_lstm_args *a = e->args;
    const int last = keel_graph_spec(e->graph, z)->shape.rank - 1;
    KEEL_TRY(keel_emit_part(e, z, last, which * a->filters, a->filters, out));
    return keel_emit_activation(e, which == 2 ? &a->activation : &a->recurrent_activation, *out,
                                out);
}

static keel_status times(keel_emit *e, keel_value a, keel_value b, keel_value *out)
{
    static const keel_binary_args plain = { 0 };
    return keel_emit_on(e, &keel_op_multiply, &plain, (keel_value[]){ a, b }, 2, out);
}

static keel_status one_step(keel_emit *e, const lstm *l, keel_value z, keel_value *h, keel_value *c)
{
    const keel_conv_lstm_args *a = e->args;
    keel_value i, f, g, o, squashed;
    KEEL_TRY(add_state(e, l, &z));
    KEEL_TRY(gate(e, z, 0, &i));
    KEEL_TRY(gate(e, z, 2, &g));
    KEEL_TRY(gate(e, z, 3, &o));
    KEEL_TRY(times(e, i, g, c));
    if (l->c >= 0) {
        KEEL_TRY(gate(e, z, 1, &f));
        KEEL_TRY(times(e, f, l->c, &f));
        KEEL_TRY(keel_emit_on(e, &keel_op_add, NULL, (keel_value[]){ f, *c }, 2, c));
    }
    KEEL_TRY(keel_emit_activation(e, &a->activation, *c, &squashed));
    return times(e, o, squashed, h);
}

/* The new value if the step counts, else the old one; -1: zeros. */
static keel_status where_counts(keel_emit *e, keel_value counts, keel_value before, keel_value *x)
{
    const keel_where_args zeros = { .fixed = { false, true } }, plain = { 0 };
    const keel_value in[3] = { counts, *x, before };
    return keel_emit_on(e, &keel_op_where, before < 0 ? &zeros : &plain, in, before < 0 ? 2 : 3, x);
}

/* The states before the first step and the dropout of the state, once the convolution of its input
 * is known. */
static keel_status begin(keel_emit *e, lstm *l, keel_value z)
{
    const keel_conv_lstm_args *a = e->args;
    const keel_dropout_args op = { .rate = a->recurrent_dropout, .first = KEEL_DRAW_OF_STATE };
    l->state = keel_graph_spec(e->graph, z)->shape;
    l->state.dim[l->state.rank - 1] = a->filters;
    for (int i = 1; i < e->n_in; i++) {
        if (!keel_shape_equal(&keel_graph_spec(e->graph, e->in[i])->shape, &l->state))
            return keel_fail(KEEL_ESHAPE, "initial_state: not of the shape of a step's output");
        *(i == 1 ? &l->h : &l->c) = e->in[i];
    }
    for (int i = 0; a->stateful && e->n_in == 1 && i < 2; i++) {
        KEEL_TRY(keel_graph_carry(e->graph, &l->state, i, &l->begin[i]));
        KEEL_TRY(keel_graph_cast(e->graph, l->begin[i], e->graph->held, i ? &l->c : &l->h));
    }
    if (l->h < 0 && l->steps == 1) { /* so that the recurrent kernel gets a gradient, which is 0 */
        KEEL_TRY(gate(e, z, 0, &l->h));
        KEEL_TRY(constant(e, 0, l->h, &l->h));
        l->c = l->h;
    }
    if (!drops(e, a->recurrent_dropout)) return KEEL_OK;
    KEEL_TRY(constant(e, 1, z, &l->kept));
    return keel_emit_on(e, &keel_op_dropout, &op, &l->kept, 1, &l->kept);
}

/* Runs all steps; outputs that are wanted go to each[T]. */
static keel_status run(keel_emit *e, lstm *l, bool backwards, bool zeros, keel_value *each)
{
    const keel_value mask = keel_rnn_mask(e);
    keel_value out = -1, counts = -1, z, h, c;
    keel_shape one = { .rank = l->dims + 1 };
    for (int d = 0; d < one.rank; d++) one.dim[d] = 1;
    for (int64_t t = 0; t < l->steps; t++) {
        const int64_t time = backwards ? l->steps - 1 - t : t;
        KEEL_TRY(brought(e, l, time, &z));
        if (t == 0) KEEL_TRY(begin(e, l, z));
        KEEL_TRY(one_step(e, l, z, &h, &c));
        each[t] = h;
        if (mask >= 0) {
            KEEL_TRY(keel_emit_part(e, mask, 0, time, 1, &counts));
            KEEL_TRY(keel_emit_view(e, &one, counts, &counts));
            KEEL_TRY(where_counts(e, counts, zeros ? -1 : out, &each[t]));
            KEEL_TRY(where_counts(e, counts, l->h, &h));
            KEEL_TRY(where_counts(e, counts, l->c, &c));
        }
        out = each[t];
        l->h = h;
        l->c = c;
        if (e->graph->n_node > NODES_MAX)
            return keel_fail(KEEL_EUNSUP, "more than %d ops in one model", NODES_MAX);
    }
    return KEEL_OK;
}

/* The outputs of the steps, [T, places.., filters]. */
static keel_status stack(keel_emit *e, const lstm *l, keel_value *each, keel_value *out)
{
    static const keel_axis_args along = { .axis = 0 };
    keel_shape one = { .rank = l->state.rank + 1, .dim = { 1 } };
    for (int d = 0; d < l->state.rank; d++) one.dim[d + 1] = l->state.dim[d];
    for (int64_t t = 0; t < l->steps; t++) KEEL_TRY(keel_emit_view(e, &one, each[t], &each[t]));
    return keel_emit_on(e, &keel_op_concatenate, &along, each, (int)l->steps, out);
}

static keel_status check(const keel_emit *e, int dims, const keel_shape *in)
{
    const keel_conv_lstm_args *a = e->args;
    if (in->rank != dims + 2)
        return keel_fail(KEEL_ESHAPE, "expected rows of (time, %d dims of places, channels)", dims);
    if (e->n_in != 1 && e->n_in != 3)
        return keel_fail(KEEL_EARG, "initial_state: %d, there are 2 states", e->n_in - 1);
    for (int d = 0; d < dims; d++)
        if (a->strides.at[d] > 1)
            for (int k = 0; k < dims; k++)
                if (a->dilation_rate.at[k] > 1)
                    return keel_fail(KEEL_EARG, "strides and dilation_rate cannot both be above 1");
    if (in->dim[0] > STEPS_MAX && !e->graph->outline)
        return keel_fail(KEEL_EUNSUP, "%lld steps, more than the %d that can be called one by one",
                         (long long)in->dim[0], STEPS_MAX);
    const keel_value mask = keel_rnn_mask(e);
    if (mask >= 0 && keel_graph_spec(e->graph, mask)->shape.rank != 1)
        return keel_fail(KEEL_ESHAPE, "the mask must have one number for each of the %lld steps",
                         (long long)in->dim[0]);
    return KEEL_OK;
}

static keel_status emit_last(keel_emit *e, int dims)
{
    const keel_conv_lstm_args *a = e->args;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const bool zeros = e->how ? a->return_sequences : a->zero_output_for_mask;
    lstm l = { .dims = dims, .x = e->in[0], .h = -1, .c = -1, .kept = -1, .begin = { -1, -1 } };
    keel_value last;
    KEEL_TRY(check(e, dims, &in));
    l.steps = e->graph->outline ? 1 : in.dim[0];
    KEEL_TRY(declare(e, dims, in.dim[dims + 1], &l));
    KEEL_TRY(drop_inputs(e, &l));
    if (dims < 3) KEEL_TRY(convolve(e, &l.input, of_input(a), -1, l.groups ? GATES : 1, l.x, &l.x));
    keel_value *each = keel_calloc((size_t)l.steps, sizeof *each);
    if (!each) return KEEL_ENOMEM;
    keel_status s = run(e, &l, a->go_backwards, zeros, each);
    last = each[l.steps - 1];
    if (s >= 0 && a->return_sequences) {
        s = stack(e, &l, each, &last);
        if (s >= 0 && l.steps < in.dim[0]) s = keel_emit_repeated(e, last, 0, in.dim[0], &last);
    }
    keel_free(each);
    KEEL_TRY(s);
    for (int i = 0; i < 2 && l.begin[i] >= 0; i++)
        KEEL_TRY(keel_graph_carry_end(e->graph, l.begin[i], i ? l.c : l.h));
    KEEL_TRY(keel_emit_outputs(e, a->return_state ? 3 : 1));
    e->out[0] = last;
    e->out_mask[0] = a->return_sequences ? e->mask[0] : KEEL_MASK_NONE;
    for (int i = 1; i < e->n_out; i++) {
        e->out[i] = i == 1 ? l.h : l.c;
        e->out_mask[i] = KEEL_MASK_NONE;
    }
    return KEEL_OK;
}

keel_status keel_conv_lstm_emit(keel_emit *e, int dims)
{
    const keel_conv_lstm_args *a = e->args;
    const keel_value *const given = e->in;
    keel_value in[3];
    if (a->data_format != 1) return emit_last(e, dims);
    for (int i = 0; i < e->n_in; i++) /* at most three */
        if (keel_emit_in(e, i)->shape.rank != dims + (i == 0) + 1)
            return keel_fail(KEEL_ESHAPE, "expected rows of (time, channels, %d dims of places)",
                             dims);
    for (int i = 0; i < e->n_in; i++)
        KEEL_TRY(keel_emit_moved(e, i == 0, dims + (i == 0), given[i], &in[i]));
    e->in = in;
    const keel_status s = emit_last(e, dims);
    e->in = given;
    KEEL_TRY(s);
    for (int i = 0; i < e->n_out; i++) {
        const int time = i == 0 && a->return_sequences;
        KEEL_TRY(keel_emit_moved(e, dims + time, time, e->out[i], &e->out[i]));
    }
    return KEEL_OK;
}
