/* From what a step has left in its trace to a graph that a trainer compiles: losses become nodes,
 * and each call of a layer is told whether its weights get a gradient from there.
 *
 * The engine has one backward. A gradient of some losses for some weights flows along a *way*: the
 * nodes behind one of these weights and before one of these losses. Ways of different gradients may
 * not share a node, and no gradient may leave its way: both would add to weights what nobody asked
 * for. So each node is on one way at most, and a node with weights passes gradients to them only if
 * they are those of its way; elsewhere it is frozen. */
#include "train/trace.h"
#include "base/memory.h"
#include "graph/fuse.h"
#include "losses/along.h"
#include "ops/all.h"
#include "ops/args.h"
#include "train/whole_loss.h"
#include <string.h>

/* ---- the mean of a value, as a loss ---------------------------------------------------------- */

#define MEAN(name, real)                                                                           \
    static double name(keel_elements *e)                                                           \
    {                                                                                              \
        const real *p = e->y_pred;                                                                 \
        const int64_t n = e->count * e->last;                                                      \
        real *grad = e->grad;                                                                      \
        double sum = 0;                                                                            \
        for (int64_t i = 0; i < n; i++) sum += (double)p[i];                                       \
        for (int64_t i = 0; grad && i < n; i++) grad[i] = (real)(e->scale / (double)e->last);      \
        return sum / (double)e->last;                                                              \
    }
MEAN(mean_f32, float)
MEAN(mean_f64, double)

/* A row is one element: its numbers are seen as its classes, its target is not read. */
static const keel_loss mean_loss = {
    .type = { .name = "mean", .args_size = sizeof(keel_loss_plain) },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .target = KEEL_TARGET_LABEL,
    .of = { mean_f32, mean_f64 },
};
static const keel_loss_plain mean_args = { KEEL_SUM_OVER_BATCH_SIZE };

static keel_status as_row(keel_graph *g, keel_value *v)
{
    const keel_spec *spec = keel_graph_spec(g, *v);
    const keel_reshape_args row = { .shape = { 1, { keel_row_count(spec) } } };
    KEEL_TRY(keel_graph_cast(g, *v, g->real, v));
    const keel_value in = *v;
    g->held = g->real;
    return keel_graph_add(
        g, &(keel_node_parts){ .op = &keel_op_reshape, .args = &row, .n_in = 1, .in = &in }, v, 1);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* Fuses ops. Only values that are asked for later are values afterwards. */
static keel_status fuse(keel_trace *t)
{
    const size_t most = 2 * (size_t)t->n_value;
    keel_value *keep = keel_calloc(most, sizeof *keep);
    keel_value **of = keel_calloc(most, sizeof *of);
    bool *taken = keel_calloc((size_t)t->n_value, sizeof *taken);
    int n = 0;
    keel_status s = keep && of && taken ? KEEL_OK : KEEL_ENOMEM;
    if (s < 0) goto out;
    for (int i = 0; i < t->n_loss; i++)
        taken[t->loss[i].prediction] = taken[t->loss[i].target] = taken[t->loss[i].weight] = true;
    for (int i = 0; i < t->n_loss; i++)
        for (int k = 0; t->loss[i].whole && k < t->loss[i].whole->o.n_input; k++)
            taken[t->loss[i].whole->value[k]] = true;
    for (int i = 0; i < t->n_return; i++)
        if (t->ret[i].value >= 0) taken[t->ret[i].value] = true;
    for (int v = 0; v < t->n_value; v++) {
        if (!taken[v]) continue;
        of[n++] = &t->value[v].value;
        if (t->value[v].mask >= 0) of[n++] = &t->value[v].mask;
    }
    for (int i = 0; i < n; i++) keep[i] = *of[i];
    s = keel_graph_fuse(t->g, keep, n);
    for (int i = 0; i < n && s >= 0; i++) *of[i] = keep[i];
out:
    keel_free(keep);
    keel_free(of);
    keel_free(taken);
    return s;
}

/* What a loss is to the engine. */
static void identify(const keel_traced_loss *from, const keel_loss **loss, const void **args)
{
    *loss = from->loss.type ? (const keel_loss *)from->loss.type
            : from->whole   ? &keel_loss_of_whole
                            : &mean_loss;
    *args = from->loss.type ? from->loss.args
            : from->whole   ? (const void *)&from->whole->args
                            : &mean_args;
}

static keel_status describe_loss(keel_trace *t, int loss, double factor)
{
    keel_traced_loss *from = &t->loss[loss];
    keel_scored *s = t->s;
    if (s->n_loss >= KEEL_OUTPUTS_MAX)
        return keel_fail(KEEL_EUNSUP, "a step of more than %d losses", KEEL_OUTPUTS_MAX);
    keel_scored_loss *l = &s->loss[s->n_loss];
    *l =
        (keel_scored_loss){ .output = loss,
                            .args = { .index = s->n_loss + 1, .weight = factor, .rows = t->rows } };
    identify(from, &l->args.loss, &l->args.args);
    l->name = l->args.loss->type.name;
    if (from->scored < 0) from->scored = s->n_loss;
    s->n_loss++;
    return KEEL_OK;
}

/* A loss for each term of each gradient; then those that are only returned. */
static keel_status describe_losses(keel_trace *t)
{
    for (int k = 0; k < t->n_gradients; k++)
        for (int i = 0; i < t->gradients[k].n_term; i++)
            KEEL_TRY(
                describe_loss(t, t->gradients[k].term[i].scalar, t->gradients[k].term[i].factor));
    for (int i = 0; i < t->n_loss; i++)
        if (t->loss[i].scored < 0) KEEL_TRY(describe_loss(t, i, 1));
    return KEEL_OK;
}

/* ---- ways ------------------------------------------------------------------------------------ */

typedef struct ways {
    const keel_trace *t;
    bool *moved;  /* [n_value] a weight that is trained lies before it, or a wanted input */
    bool *behind; /* [n_value] a weight of this gradient lies before it */
    bool *before; /* [n_value] a loss of this gradient lies behind it */
    int *way;     /* [n_node] the gradient on whose way it is; -1: none */
} ways;

static bool has_weight(const keel_graph_node *n, const bool *of, int n_of)
{
    for (int k = 0; k < n->node.n_weight; k++)
        if (n->weight[k] < n_of && of[n->weight[k]]) return true;
    return false;
}

/* Marks the values that depend on some weights, through ops that have a gradient; as the engine
 * sees it, without what frozen nodes read. */
static void mark_behind(const ways *w, const bool *weights, int n_weight, bool *behind)
{
    const keel_graph *g = w->t->g;
    memset(behind, 0, (size_t)g->n_value * sizeof *behind);
    for (int i = 0; i < g->n_wanted; i++) behind[keel_graph_input_value(g, g->wanted[i])] = true;
    for (int i = 0; i < g->n_node; i++) {
        const keel_graph_node *n = &g->node[i];
        bool is = !n->frozen && has_weight(n, weights, n_weight);
        for (int k = 0; k < n->node.n_in; k++) is = is || behind[n->in[k]];
        is = is && n->node.op->backward[0] != NULL;
        for (int k = 0; k < n->node.n_out; k++)
            behind[n->out[k]] = is && keel_dtype_flows(n->node.out[k].dtype);
    }
}

/* A loss passes no gradient to its targets and weights, where Keras would. */
static keel_status check_loss(const ways *w, const keel_graph_node *n, const bool *depends)
{
    for (int k = KEEL_SCORE_TARGET; k < n->node.n_in; k++)
        if (depends[n->in[k]])
            return keel_fail(KEEL_EUNSUP,
                             "loss '%s': its %s depend on %s; put ops.StopGradient before them, or "
                             "make the loss of operations",
                             n->node.layer, k == KEEL_SCORE_TARGET ? "targets" : "weights",
                             w->t->within ? "values that get a gradient"
                                          : "weights that are trained");
    return KEEL_OK;
}

/* Follows gradient k back from its losses. */
static keel_status follow(const ways *w, int k, int first_loss, int n_loss)
{
    const keel_trace *t = w->t;
    const keel_graph *g = t->g;
    const keel_traced_gradients *of = &t->gradients[k];
    mark_behind(w, of->watched, of->n_weight, w->behind);
    memset(w->before, 0, (size_t)g->n_value * sizeof *w->before);
    for (int i = 0; i < n_loss; i++) {
        const keel_graph_node *n = &g->node[t->s->loss[first_loss + i].node];
        w->before[n->in[KEEL_SCORE_PREDICTION]] = true;
        KEEL_TRY(check_loss(w, n, w->behind));
    }
    for (int i = g->n_node - 1; i >= 0; i--) {
        const keel_graph_node *n = &g->node[i];
        bool before = false, on = has_weight(n, of->watched, of->n_weight);
        for (int o = 0; o < n->node.n_out; o++) before = before || w->before[n->out[o]];
        if (!before || n->node.op->backward[0] == NULL) continue;
        for (int o = 0; o < n->node.n_in; o++) {
            w->before[n->in[o]] = true;
            on = on || w->behind[n->in[o]];
        }
        if (!on) continue;
        if (w->way[i] >= 0)
            return keel_fail(KEEL_EUNSUP,
                             "layer '%s' lies on the way of two gradients: call its model again "
                             "for the second",
                             n->node.layer);
        w->way[i] = k;
    }
    return KEEL_OK;
}

/* Whether a gradient would leave its way, into weights that are another's. */
static keel_status check_ways(const ways *w)
{
    const keel_trace *t = w->t;
    for (int k = 0; k < t->n_gradients; k++) {
        mark_behind(w, t->gradients[k].watched, t->gradients[k].n_weight, w->behind);
        for (int i = 0; i < t->g->n_node; i++) {
            const keel_graph_node *n = &t->g->node[i];
            for (int o = 0; w->way[i] == k && o < n->node.n_in; o++)
                if (w->moved[n->in[o]] && !w->behind[n->in[o]])
                    return keel_fail(KEEL_EUNSUP,
                                     "layer '%s': a loss also depends on weights whose gradient is "
                                     "that of another; put ops.StopGradient before this layer",
                                     n->node.layer);
        }
    }
    return KEEL_OK;
}

/* Which weights a node passes gradients to: all that are trained, if they are of its way. */
static keel_status freeze(const ways *w)
{
    keel_graph *g = w->t->g;
    for (int i = 0; i < g->n_node; i++) {
        keel_graph_node *n = &g->node[i];
        if (n->node.n_weight == 0) continue;
        n->frozen = true;
        if (w->way[i] < 0) continue;
        const keel_traced_gradients *of = &w->t->gradients[w->way[i]];
        int own = 0, others = 0;
        for (int k = 0; k < n->node.n_weight; k++) {
            const keel_variable v = n->weight[k];
            const bool is = v < of->n_weight && of->watched[v];
            own += is;
            others += w->t->trains[v] && !is;
        }
        n->frozen = own == 0;
        if (own && others)
            return keel_fail(KEEL_EUNSUP, "layer '%s': two optimizers move its weights",
                             n->node.layer);
    }
    return KEEL_OK;
}

static keel_status find_ways(keel_trace *t)
{
    keel_graph *g = t->g;
    ways w = { .t = t };
    keel_status s = KEEL_ENOMEM;
    const size_t n = (size_t)g->n_value;
    w.moved = keel_calloc(n, sizeof *w.moved);
    w.behind = keel_calloc(n, sizeof *w.behind);
    w.before = keel_calloc(n, sizeof *w.before);
    w.way = keel_calloc((size_t)g->n_node, sizeof *w.way);
    if (!w.moved || !w.behind || !w.before || !w.way) goto out;
    for (int i = 0; i < g->n_node; i++) w.way[i] = -1;
    s = KEEL_OK;
    for (int k = 0, first = 0; k < t->n_gradients && s >= 0; k++) {
        s = follow(&w, k, first, t->gradients[k].n_term);
        first += t->gradients[k].n_term;
    }
    if (s >= 0) s = freeze(&w);
    if (s >= 0) {
        mark_behind(&w, t->trains, t->models->n_weight, w.moved);
        s = check_ways(&w);
    }
    for (int i = 0; i < g->n_node && s >= 0; i++)
        if (g->node[i].node.op == &keel_loss_op) s = check_loss(&w, &g->node[i], w.moved);
out:
    keel_free(w.moved);
    keel_free(w.behind);
    keel_free(w.before);
    keel_free(w.way);
    return s;
}

/* ---- losses become nodes --------------------------------------------------------------------- */

/* One row of the values of a loss of all rows. A value on which no weight of gradient k (-1: none)
 * depends gets none from here, so the loss may be one of several gradients. */
static keel_status whole_row(keel_trace *t, const keel_whole *whole, int k, keel_value *row)
{
    const ways w = { .t = t };
    const size_t n = (size_t)t->g->n_value;
    if (k < 0) return keel_whole_row(whole, t, NULL, row);
    bool *stops = keel_calloc(n, sizeof *stops), *behind = keel_calloc(n, sizeof *behind);
    keel_status s = KEEL_ENOMEM;
    if (stops && behind) {
        mark_behind(&w, t->trains, t->models->n_weight, stops);
        mark_behind(&w, t->gradients[k].watched, t->gradients[k].n_weight, behind);
        for (size_t v = 0; v < n; v++) stops[v] = stops[v] && !behind[v];
        s = keel_whole_row(whole, t, stops, row);
    }
    keel_free(stops);
    keel_free(behind);
    return s;
}

/* gradient: which one it is a term of; -1: none. flows: a gradient flows from it. */
static keel_status emit_loss(keel_trace *t, int k, int gradient, bool flows)
{
    keel_scored_loss *l = &t->s->loss[k];
    const keel_traced_loss *from = &t->loss[l->output];
    const keel_traced_value *prediction = &t->value[from->prediction];
    keel_value in[4] = { prediction->value, t->value[from->target].value,
                         t->value[from->weight].value, prediction->mask };
    keel_graph *g = t->g;
    const bool mean = l->args.loss == &mean_loss;
    g->layer = l->name;
    if (from->whole)
        KEEL_TRY(whole_row(t, from->whole, gradient, &in[0]));
    else
        KEEL_TRY(keel_graph_cast(g, in[0], g->real, &in[0]));
    if (mean) KEEL_TRY(as_row(g, &in[0]));
    if (mean || from->whole) in[3] = KEEL_MASK_NONE; /* operations have used the mask */
    if (!flows && t->backward) {
        const keel_value v = in[0];
        const keel_node_parts stop = { .op = &keel_op_stop_gradient, .n_in = 1, .in = &v };
        KEEL_TRY(keel_graph_add(g, &stop, &in[0], 1));
    }
    if (!keel_loss_is_reduced(l->args.loss, l->args.args))
        return keel_fail(KEEL_EUNSUP, "without a reduction it is no single number: use \"sum\"");
    KEEL_TRY(keel_along_check(l->args.loss, l->args.args, keel_graph_spec(g, in[0]),
                              keel_graph_spec(g, in[1]), &l->elements));
    return keel_scored_emit_loss(t->s, l, g, in, in[3] >= 0 ? 4 : 3);
}

/* The gradient whose term loss k is; -1: none. */
static int gradient_of(const keel_trace *t, int k)
{
    for (int i = 0; i < t->n_gradients; i++) {
        if (k < t->gradients[i].n_term) return i;
        k -= t->gradients[i].n_term;
    }
    return -1;
}

static keel_status emit_losses(keel_trace *t)
{
    t->g->held = t->g->real;
    for (int k = 0; k < t->s->n_loss; k++) {
        const int gradient = gradient_of(t, k);
        const bool given = t->within && t->s->loss[k].output == t->gives;
        const keel_status s = emit_loss(t, k, gradient, given || gradient >= 0);
        if (s < 0)
            return s == KEEL_ENOMEM ? s : keel_fail_within(s, "loss '%s'", t->s->loss[k].name);
    }
    return KEEL_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static keel_status find_trained(keel_trace *t)
{
    t->trains = keel_calloc((size_t)t->models->n_weight, sizeof *t->trains);
    if (!t->trains) return KEEL_ENOMEM;
    for (int k = 0; k < t->n_gradients; k++) {
        const keel_traced_gradients *g = &t->gradients[k];
        if (g->apply < 0)
            return keel_fail(KEEL_EARG, "gradients %d of the step are not applied", k);
        for (int v = 0; v < g->n_weight; v++) t->trains[v] = t->trains[v] || g->watched[v];
    }
    return KEEL_OK;
}

static keel_status list_outputs(keel_trace *t, keel_value **outputs, int *n_output)
{
    keel_value *list = keel_calloc((size_t)t->n_return, sizeof *list);
    int n = 0;
    if (!list) return KEEL_ENOMEM;
    for (int i = 0; i < t->n_return; i++) {
        keel_traced_return *r = &t->ret[i];
        if (r->value < 0) continue;
        const keel_status s = keel_graph_cast(t->g, t->value[r->value].value, t->g->real, &list[n]);
        if (s < 0) {
            keel_free(list);
            return s;
        }
        r->output = n++;
    }
    *outputs = list;
    *n_output = n;
    return KEEL_OK;
}

/* The inputs of a loss of all rows get gradients, as far as they are real numbers. */
static keel_status want_inputs(keel_trace *t)
{
    for (int i = 0; t->within && t->backward && i < t->g->n_input; i++) {
        const int field = t->s->field[i];
        if (field < t->options->n_input && keel_dtype_flows(t->input[field].dtype))
            KEEL_TRY(keel_graph_want(t->g, i));
    }
    return KEEL_OK;
}

keel_status keel_trace_finish(keel_trace *t, keel_value **outputs, int *n_output)
{
    KEEL_TRY(find_trained(t));
    KEEL_TRY(want_inputs(t));
    KEEL_TRY(fuse(t));
    t->g->layer = "result";
    t->g->held = t->g->real;
    t->g->training = false;
    KEEL_TRY(list_outputs(t, outputs, n_output));
    KEEL_TRY(describe_losses(t));
    KEEL_TRY(keel_scored_find_activities(t->s, t->g));
    t->s->apart = t->within || t->s->n_loss + t->s->n_activity > 1; /* nobody divides later */
    KEEL_TRY(emit_losses(t));
    t->g->layer = NULL;
    return t->backward ? find_ways(t) : KEEL_OK;
}
