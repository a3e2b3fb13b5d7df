/* See derive.h. The nodes between x and y are walked backwards once; each op says how its gradient
 * is made of other ops (ops/derive.h). Rows are independent in all of these ops, so the gradient of
 * the sum over all rows is that of each row. */
#include "graph/derive.h"
#include "base/memory.h"
#include "ops/all.h"
#include "ops/derive.h"

typedef struct walk {
    keel_graph *g;
    bool *behind;     /* [n_value] depends on x */
    keel_value *grad; /* [n_value] the gradient so far; -1: none */
} walk;

static keel_status emit(const keel_derivation *d, const keel_op *op, const void *args,
                        const int *in, int n_in, int weight, const keel_shape *as, int *out)
{
    walk *w = d->graph;
    keel_graph *g = w->g;
    const keel_graph_node *node = NULL;
    keel_value real[2];
    for (int i = 0; i < g->n_node && !node; i++)
        if (g->node[i].out == d->out) node = &g->node[i];
    const keel_variable v = node && as ? node->weight[weight] : -1;
    const keel_spec spec = { g->real, as ? *as : (keel_shape){ 0 } };
    for (int i = 0; i < n_in && i < 2; i++) KEEL_TRY(keel_graph_cast(g, in[i], g->real, &real[i]));
    return keel_graph_add(g,
                          &(keel_node_parts){ .op = op,
                                              .args = args,
                                              .n_in = n_in,
                                              .in = real,
                                              .n_weight = as != NULL,
                                              .weight = &v,
                                              .weight_spec = &spec },
                          out, 1);
}

/* Marks what depends on x; false: y does not. */
static bool mark(walk *w, int n_node, keel_value x, keel_value y)
{
    w->behind[x] = true;
    for (int i = 0; i < n_node; i++) {
        const keel_graph_node *n = &w->g->node[i];
        bool behind = false;
        for (int k = 0; k < n->node.n_in; k++) behind = behind || w->behind[n->in[k]];
        behind = behind && n->node.op->backward[0];
        for (int k = 0; k < n->node.n_out; k++)
            w->behind[n->out[k]] = w->behind[n->out[k]] || behind;
    }
    return w->behind[y];
}

/* Adds to the gradient of a value. */
static keel_status put(walk *w, keel_value v, keel_value more)
{
    const keel_value had = w->grad[v];
    w->grad[v] = more;
    if (had < 0) return KEEL_OK;
    return keel_graph_add(
        w->g,
        &(keel_node_parts){ .op = &keel_op_add, .n_in = 2, .in = (keel_value[]){ had, more } },
        &w->grad[v], 1);
}

/* Of an input that the op has repeated along dims of 1: the sum over them. */
static keel_status sum_repeated(walk *w, keel_value in, keel_value *grad)
{
    const keel_shape *own = &keel_graph_spec(w->g, in)->shape;
    const keel_shape *all = &keel_graph_spec(w->g, *grad)->shape;
    keel_reduce_args args = { .to = KEEL_REDUCE_SUM, .keepdims = true };
    if (keel_shape_equal(own, all)) return KEEL_OK;
    for (int i = 0; i < all->rank; i++) args.over[i] = own->dim[i] != all->dim[i];
    const keel_value of = *grad;
    return keel_graph_add(
        w->g, &(keel_node_parts){ .op = &keel_op_reduce, .args = &args, .n_in = 1, .in = &of },
        grad, 1);
}

static keel_status derive_node(walk *w, int i)
{
    const keel_op *op = w->g->node[i].node.op;
    const char *layer = w->g->node[i].layer;
    const int n_in = w->g->node[i].node.n_in;
    bool wanted = false;
    for (int k = 0; k < n_in; k++) wanted = wanted || w->behind[w->g->node[i].in[k]];
    if (!wanted || w->grad[w->g->node[i].out[0]] < 0) return KEEL_OK;
    if (!op->derive)
        return keel_fail(KEEL_EUNSUP,
                         "layer '%s': the gradient of op %s cannot be differentiated itself", layer,
                         op->name);
    w->g->layer = layer;
    w->g->stream = w->g->node[i].node.stream;
    w->g->training = w->g->node[i].node.training;
    for (int k = 0; k < n_in; k++) {
        const keel_graph_node *n = &w->g->node[i]; /* nodes move when others are added */
        const keel_node node = n->node;
        const keel_derivation d = { .node = &node,
                                    .in = n->in,
                                    .out = n->out,
                                    .grad = w->grad[n->out[0]],
                                    .emit = emit,
                                    .graph = w };
        const keel_value in = n->in[k];
        keel_value made = -1;
        if (!w->behind[in]) continue;
        const keel_status s = op->derive(&d, k, &made);
        if (s < 0) return s == KEEL_ENOMEM ? s : keel_fail_within(s, "layer '%s'", layer);
        KEEL_TRY(sum_repeated(w, in, &made));
        KEEL_TRY(put(w, in, made));
    }
    return KEEL_OK;
}

/* Ones, of the shape of y. */
static keel_status begin(keel_graph *g, keel_value y, keel_value *out)
{
    const keel_where_args ones = { .fixed = { true, true }, .constant = { 1, 1 } };
    const keel_node_parts stop = { .op = &keel_op_stop_gradient, .n_in = 1, .in = out };
    KEEL_TRY(keel_graph_cast(g, y, g->real, out));
    KEEL_TRY(keel_graph_add(g, &stop, out, 1));
    const keel_value in = *out;
    return keel_graph_add(
        g, &(keel_node_parts){ .op = &keel_op_where, .args = &ones, .n_in = 1, .in = &in }, out, 1);
}

keel_status keel_graph_derive(keel_graph *g, keel_value y, keel_value x, keel_value *out)
{
    const int n_value = g->n_value, n_node = g->n_node;
    const char *const layer = g->layer;
    const keel_dtype held = g->held;
    const uint16_t stream = g->stream;
    const bool training = g->training;
    walk w = { .g = g };
    keel_status s = KEEL_ENOMEM;
    w.behind = keel_calloc((size_t)n_value, sizeof *w.behind);
    w.grad = keel_calloc((size_t)n_value, sizeof *w.grad);
    if (!w.behind || !w.grad) goto out;
    for (int v = 0; v < n_value; v++) w.grad[v] = -1;
    s = KEEL_OK;
    if (!mark(&w, n_node, x, y))
        s = keel_fail(KEEL_EARG, "the value does not depend on the one to which its gradient is "
                                 "asked for");
    g->held = g->real;
    if (s >= 0) s = begin(g, y, &w.grad[y]);
    for (int i = n_node - 1; i >= 0 && s >= 0; i--)
        if (g->value[x].node != i) s = derive_node(&w, i);
    if (s >= 0) *out = w.grad[x];
out:
    g->layer = layer;
    g->held = held;
    g->stream = stream;
    g->training = training;
    keel_free(w.behind);
    keel_free(w.grad);
    return s;
}
