/* Shapes, saved values and cases of the ops that go through time. */
#include "ops/all.h"
#include "ops/recurrent.h"
#include <stdio.h>
#include <string.h>

const keel_cell keel_cell_simple_rnn = { .gates = 1, .parts = 1, .states = 1 };
const keel_cell keel_cell_lstm = { .gates = 4, .parts = 4, .states = 2 };
const keel_cell keel_cell_gru = { .gates = 3, .parts = 4, .states = 1 };

static keel_status check_gate(keel_node *n, const keel_gate *g, const keel_spec *units)
{
    keel_node of = { .op = g->op,
                     .args = g->args,
                     .layer = n->layer,
                     .training = n->training,
                     .backward = n->backward,
                     .real = n->real,
                     .held = n->real,
                     .n_in = 1,
                     .in = units };
    if (!g->op) return KEEL_OK;
    keel_status s = keel_node_infer(&of);
    if (s >= 0 && (of.n_out != 1 || of.n_saved || of.scratch || of.sums ||
                   !keel_shape_equal(&of.out[0].shape, &units->shape) || !g->op->backward[0]))
        s = keel_fail(KEEL_EUNSUP, "%s: %s cannot be the function of a gate", n->op->name,
                      g->op->name);
    keel_node_clear(&of);
    return s;
}

static bool reads_input(const keel_gate *g)
{
    return g->op && g->op->backward_reads & (KEEL_READS_IN | KEEL_READS_FIRST);
}

static keel_status check_in(const keel_node *n, int i, const char *name, const keel_shape *want)
{
    char have[96], wants[96];
    if (keel_shape_equal(&n->in[i].shape, want)) return KEEL_OK;
    keel_shape_text(have, &n->in[i].shape);
    keel_shape_text(wants, want);
    return keel_fail(KEEL_ESHAPE, "%s: the %s is %s, needs %s", n->op->name, name, have, wants);
}

keel_steps keel_recurrent_steps(const keel_node *n, const keel_cell *cell)
{
    const keel_recurrent_args *a = n->args;
    const bool reads = reads_input(&a->activation) || reads_input(&a->recurrent);
    keel_steps s = { n->in[0].shape.dim[0], n->weight[0].shape.dim[0], -1, -1, -1, -1 };
    int next = 1;
    if (a->masked) s.mask = next++;
    if (a->stated) s.state = next, next += cell->states;
    if (a->dropped) s.drop = next;
    if (reads) s.pre = cell->states > 1 ? KEEL_SAVED_CELL + 1 : KEEL_SAVED_BEFORE + 1;
    return s;
}

keel_status keel_recurrent_infer(keel_node *n, const keel_cell *cell)
{
    const keel_recurrent_args *a = n->args;
    const int n_in = 1 + a->masked + (a->stated ? cell->states : 0) + a->dropped;
    KEEL_TRY(keel_infer_check(n, n_in, 1, a->reset_after ? 2 : 1));
    const keel_shape *z = &n->in[0].shape, *w = &n->weight[0].shape;
    const int64_t units = w->dim[0];
    char have[96];
    keel_shape_text(have, w);
    if (w->rank != 2 || units > INT64_MAX / 64 || w->dim[1] != cell->gates * units)
        return keel_fail(KEEL_ESHAPE, "%s: recurrent_kernel is %s; needs (units, %d units)",
                         n->op->name, have, cell->gates);
    keel_shape_text(have, z);
    if (z->rank != 2 || z->dim[1] != w->dim[1])
        return keel_fail(KEEL_ESHAPE, "%s: steps of %s; needs (T, %lld)", n->op->name, have,
                         (long long)w->dim[1]);
    const keel_steps s = keel_recurrent_steps(n, cell);
    const keel_spec one = { n->real, KEEL_SHAPE(units) };
    const keel_shape mask = KEEL_SHAPE(s.steps), drop = KEEL_SHAPE(cell->gates, units),
                     bias = KEEL_SHAPE(2, w->dim[1]), all = KEEL_SHAPE(s.steps, units);
    if (n->n_weight > 1) KEEL_TRY(keel_infer_weight(n, 1, "bias", &bias));
    if (a->masked) KEEL_TRY(check_in(n, s.mask, "mask", &mask));
    for (int i = 0; a->stated && i < cell->states; i++)
        KEEL_TRY(check_in(n, s.state + i, "initial state", &one.shape));
    if (a->dropped) KEEL_TRY(check_in(n, s.drop, "dropout mask", &drop));
    KEEL_TRY(check_gate(n, &a->activation, &one));
    KEEL_TRY(check_gate(n, &a->recurrent, &one));
    KEEL_TRY(keel_infer_out(n, a->sequences ? &all : &one.shape));
    for (int i = 0; a->states && i < cell->states; i++)
        KEEL_TRY(keel_node_add_out(n, &(keel_spec){ n->held, one.shape }));
    n->scratch = KEEL_STEP_SCRATCH * units * (int64_t)sizeof(double);
    if (!n->backward) return KEEL_OK;
    const keel_spec gates = { n->real, KEEL_SHAPE(s.steps, cell->parts * units) };
    const keel_spec each = { n->real, all }, pre = { n->real, *z };
    KEEL_TRY(keel_shape_check(&gates.shape, sizeof(double)));
    KEEL_TRY(keel_node_add_saved(n, &gates));
    KEEL_TRY(keel_node_add_saved(n, &each));
    if (cell->states > 1) KEEL_TRY(keel_node_add_saved(n, &each));
    return s.pre >= 0 ? keel_node_add_saved(n, &pre) : KEEL_OK;
}

int64_t keel_recurrent_reads(const keel_node *n, int weight)
{
    (void)weight;
    return n->in[0].shape.dim[0];
}

double keel_recurrent_flops(const keel_node *n)
{
    return 2.0 * (double)n->in[0].shape.dim[0] * (double)keel_row_count(&n->weight[0]);
}

static void gate_for_case(keel_gate *g, const char *text, const char *key, const keel_op *dflt)
{
    static const struct {
        const char *name;
        const keel_op *op;
    } ops[] = { { "relu", &keel_op_relu },
                { "silu", &keel_op_silu },
                { "softmax", &keel_op_softmax },
                { "hard_sigmoid", &keel_op_hard_sigmoid } };
    char word[40];
    g->op = dflt;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        snprintf(word, sizeof word, "%s_%s", key, ops[i].name);
        if (keel_case_has(text, word)) g->op = ops[i].op;
    }
    snprintf(word, sizeof word, "%s_linear", key);
    if (keel_case_has(text, word)) g->op = NULL;
    if (g->op == &keel_op_softmax) ((keel_axis_args *)g->args)->axis = -1;
}

void keel_recurrent_case(void *args, const char *text)
{
    keel_recurrent_args *a = args;
    gate_for_case(&a->activation, text, "by", &keel_op_tanh);
    gate_for_case(&a->recurrent, text, "gates", &keel_op_sigmoid);
    a->masked = keel_case_has(text, "masked");
    a->stated = keel_case_has(text, "stated");
    a->dropped = keel_case_has(text, "dropped");
    a->sequences = keel_case_has(text, "sequences");
    a->states = keel_case_has(text, "states");
    a->backwards = keel_case_has(text, "backwards");
    a->zeros = keel_case_has(text, "zeros");
    a->reset_after = keel_case_has(text, "reset_after");
}
