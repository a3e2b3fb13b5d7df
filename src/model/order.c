/* The order of Keras's model.layers, and the order in which Keras runs their calls.
 *
 * A layer's depth is the longest path from it to an output. Deeper layers come first; among layers
 * of equal depth, the one that a walk from the outputs back to the inputs meets first (Keras:
 * map_graph). Keras names the groups of model.weights.h5 by this order, so Keras reads a file
 * correctly only if our order is the same. */
#include "base/memory.h"
#include "model/parts.h"
#include <stdlib.h>
#include <string.h>

typedef struct place { /* of a layer */
    int depth, met;    /* met: number in the order of the walk; -1: an input that nothing uses */
    int layer;
    bool there;
} place;

typedef struct walk {
    int *depth; /* of each node; -1: not met */
    int *named; /* of each node: when its depth was first asked for; -1: never */
    int n_named;
    int *next_input;   /* of each node on the stack */
    int *stack, *done; /* nodes; done: inputs before the nodes that use them */
    int n_done, n_met;
    place *at; /* of each layer */
} walk;

static void enter(const keel_model *m, walk *w, int node, int *height)
{
    place *p = &w->at[m->node[node].layer];
    if (!p->there) p->met = w->n_met++;
    p->there = true;
    w->depth[node] = 0;
    w->next_input[node] = 0;
    w->stack[(*height)++] = node;
}

static void visit(const keel_model *m, walk *w, int output)
{
    int height = 0;
    if (w->depth[output] < 0) enter(m, w, output, &height);
    while (height) {
        const int k = w->stack[height - 1];
        const keel_model_node *n = &m->node[k];
        if (w->next_input[k] == n->n_in + n->n_mask) {
            w->done[w->n_done++] = k;
            height--;
            continue;
        }
        const keel_symbol in = n->in[w->next_input[k]++];
        const int from = in < 0 ? -1 : m->symbol[in].node; /* -1: no mask */
        if (from >= 0 && w->depth[from] < 0) enter(m, w, from, &height);
    }
}

static void name_node(walk *w, int node)
{
    if (w->named[node] < 0) w->named[node] = w->n_named++;
}

static void measure(const keel_model *m, walk *w)
{
    for (int i = w->n_done - 1; i >= 0; i--) {
        const int k = w->done[i];
        name_node(w, k);
        const keel_model_node *n = &m->node[k];
        place *p = &w->at[n->layer];
        if (p->depth > w->depth[k]) w->depth[k] = p->depth;
        p->depth = w->depth[k];
        for (int j = 0; j < n->n_in + n->n_mask; j++) {
            if (n->in[j] < 0) continue;
            const int from = m->symbol[n->in[j]].node;
            if (w->depth[from] < w->depth[k] + 1) w->depth[from] = w->depth[k] + 1;
            name_node(w, from);
        }
    }
}

typedef struct turn { /* of a node */
    int depth, named, node;
} turn;

static int by_turn(const void *a, const void *b)
{
    const turn *p = a, *q = b;
    if (p->depth != q->depth) return p->depth > q->depth ? -1 : 1;
    return p->named < q->named ? -1 : 1;
}

/* Keras runs the calls of a model by depth, and those of equal depth in the order in which a walk
 * from the outputs asked for their depth (_run_through_graph). The order only matters for state
 * that several calls move. */
static keel_status take_turns(keel_model *m, const walk *w)
{
    int before = 0;
    turn *at = keel_calloc((size_t)w->n_done, sizeof *at);
    if (!at) return KEEL_ENOMEM;
    for (int i = 0; i < w->n_done; i++) {
        const int k = w->done[i];
        at[i] = (turn){ w->depth[k], w->named[k], k };
    }
    if (w->n_done) qsort(at, (size_t)w->n_done, sizeof *at, by_turn);
    for (int i = 0; i < w->n_done; i++) {
        keel_model_node *n = &m->node[at[i].node];
        const keel_model *inner = m->layer[n->layer].inner;
        n->turn = before;
        before += 1 + (inner ? (int)inner->work : 0);
    }
    keel_free(at);
    return KEEL_OK;
}

keel_status keel_model_run_order(const keel_model *m, int **out)
{
    turn *at = keel_calloc((size_t)m->n_node, sizeof *at);
    int *order = keel_calloc((size_t)m->n_node, sizeof *order);
    if (!at || !order) {
        keel_free(at);
        keel_free(order);
        return KEEL_ENOMEM;
    }
    for (int k = 0; k < m->n_node; k++) at[k] = (turn){ -m->node[k].turn, k, k };
    if (m->n_node) qsort(at, (size_t)m->n_node, sizeof *at, by_turn);
    for (int k = 0; k < m->n_node; k++) order[k] = at[k].node;
    keel_free(at);
    *out = order;
    return KEEL_OK;
}

static int by_place(const void *a, const void *b)
{
    const place *p = a, *q = b;
    if (p->depth != q->depth) return p->depth > q->depth ? -1 : 1;
    if (p->met != q->met) return p->met < q->met ? -1 : 1;
    return p->layer < q->layer ? -1 : p->layer > q->layer;
}

/* at[i].layer is the layer that comes to place i; layers and to are as long as the list. */
static void permute(keel_model *m, const place *at, keel_model_layer *layers, int *to)
{
    keel_model *root = keel_model_outermost(m);
    for (int i = 0; i < m->n_layer; i++) {
        layers[i] = m->layer[at[i].layer];
        to[at[i].layer] = i;
    }
    for (int i = 0; i < m->n_layer; i++) {
        m->layer[i] = layers[i];
        for (int k = 0; k < layers[i].n_weight; k++) root->weight[layers[i].weight[k]].layer = i;
    }
    for (int k = 0; k < m->n_node; k++) m->node[k].layer = to[m->node[k].layer];
}

keel_status keel_model_keras_order(keel_model *m)
{
    keel_status s = KEEL_OK;
    const size_t nodes = (size_t)m->n_node, n_layer = (size_t)m->n_layer;
    int *room = keel_calloc(5 * nodes + n_layer, sizeof *room), *to = NULL;
    keel_model_layer *layers = keel_calloc(n_layer, sizeof *layers);
    walk w = { .at = keel_calloc(n_layer, sizeof *w.at) };
    if (!room || !layers || !w.at) {
        s = KEEL_ENOMEM;
        goto out;
    }
    w.depth = room;
    w.next_input = room + nodes;
    w.stack = room + 2 * nodes;
    w.done = room + 3 * nodes;
    w.named = room + 4 * nodes;
    to = room + 5 * nodes;
    for (int k = 0; k < m->n_node; k++) w.depth[k] = w.named[k] = -1;
    for (int i = 0; i < m->n_layer; i++) w.at[i] = (place){ .met = -1, .layer = i };
    for (int i = 0; i < m->n_output; i++) visit(m, &w, m->symbol[m->output[i]].node);
    measure(m, &w);
    for (int k = 0; k < m->n_node; k++) {
        const keel_model_layer *l = &m->layer[m->node[k].layer];
        if (w.depth[k] >= 0 || !l->kind->emit) continue;
        s = keel_fail(KEEL_EARG, "layer '%s' leads to no output: use what it gives or leave it out",
                      l->name);
        goto out;
    }
    if ((s = take_turns(m, &w)) < 0) goto out;
    qsort(w.at, n_layer, sizeof *w.at, by_place);
    permute(m, w.at, layers, to);
out:
    keel_free(room);
    keel_free(layers);
    keel_free(w.at);
    return s;
}
