/* State that changes inside a step. A call in training mode moves state of its op (the moving
 * statistics of a BatchNormalization) when its records are merged. A later call of the same layer
 * that reads the state, as in a model called with training=False, must see the new values, as in
 * Keras. But nothing permanent may be written before the commit point. So each worker updates its
 * own copy for each such reader, and the reader's calls get the copy instead of the weight. */
#include "base/memory.h"
#include "graph/bind.h"
#include "graph/on_device.h"
#include <string.h>

/* Whether node t moves state that node n reads. Calls of the same layer have the same weights.
 */
static bool moves_for(const keel_graph_node *t, const keel_graph_node *n)
{
    if (!t->node.op->commit || t->node.partial == 0 ||
        (n->node.partial != 0 && !n->node.reads_state))
        return false;
    return keel_schedule_same_state(t, n);
}

/* The movers before node n, in their order. */
static keel_status find_movers(const keel_program *p, int n, keel_moved *m)
{
    const keel_schedule *s = &p->schedule;
    m->node = n;
    m->last = -1;
    for (int pass = 0; pass < 2; pass++) {
        int count = 0;
        for (int k = 0; k < s->n_commit; k++) {
            const int t = s->commit[k].node;
            if (t >= n || !moves_for(&p->graph->node[t], &p->graph->node[n])) continue;
            if (pass) m->mover[count] = t;
            if (t > m->last) m->last = t;
            count++;
        }
        m->n_mover = count;
        if (pass || !count) return KEEL_OK;
        if (!(m->mover = keel_calloc((size_t)count, sizeof *m->mover))) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

/* A call that is made again sees what the call saw that it repeats. If that is the layer's only one
 * before, it saw nothing moved; else it is not known which one it is. */
static keel_status see_again(const keel_program *p, int n, keel_moved *m)
{
    const keel_graph_node *node = &p->graph->node[n];
    const bool first = node->node.partial > 0 && m->n_mover == 1;
    if (!node->repeats || m->n_mover == 0 || keel_schedule_moves(&p->schedule, n)) return KEEL_OK;
    keel_free(m->mover);
    *m = (keel_moved){ 0 };
    if (first) return KEEL_OK;
    return keel_fail(
        KEEL_EUNSUP,
        "layer '%s': a call that is made again, of a layer that reads statistics which "
        "several calls in a step have moved: call the model once in training",
        node->layer);
}

keel_status keel_moved_place(keel_program *p)
{
    const keel_graph *g = p->graph;
    const size_t n_worker = (size_t)p->lanes->n_worker;
    if (p->schedule.n_commit == 0) return KEEL_OK;
    if (!(p->moved_of = keel_calloc((size_t)g->n_node, sizeof *p->moved_of))) return KEEL_ENOMEM;
    for (int i = 0; i < g->n_node; i++) {
        keel_moved m;
        const keel_node *n = &g->node[i].node;
        if (!n->op->commit || (n->training && !n->reads_state)) continue;
        KEEL_TRY(find_movers(p, i, &m));
        KEEL_TRY(see_again(p, i, &m));
        if (!m.n_mover) continue;
        keel_moved *own = keel_calloc(1, sizeof *own);
        if (!own) {
            keel_free(m.mover);
            return KEEL_ENOMEM;
        }
        p->moved_of[i] = own;
        *own = m;
        own->at = p->merged_doubles;
        for (int k = 0; k < g->node[i].node.n_weight; k++)
            p->merged_doubles += p->store->weight[g->node[i].weight[k]].count;
        own->weight = keel_calloc(2 * n_worker * (size_t)g->node[i].node.n_weight, sizeof(void *));
        if (!own->weight) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

void keel_moved_free(keel_program *p)
{
    for (int i = 0; p->moved_of && i < p->graph->n_node; i++) {
        if (!p->moved_of[i]) continue;
        keel_free(p->moved_of[i]->mover);
        keel_free(p->moved_of[i]->weight);
        keel_free(p->moved_of[i]);
    }
    keel_free(p->moved_of);
}

/* Where the copies lie. What is trained is not state, and stays where it is. */
static void **weights_of(const keel_program *p, const keel_moved *m, int worker)
{
    return m->weight + worker * p->graph->node[m->node].node.n_weight;
}

const void **keel_moved_weights(const keel_program *p, int worker, int node)
{
    const keel_moved *m = p->moved_of ? p->moved_of[node] : NULL;
    if (m) return (const void **)weights_of(p, m, worker);
    return (const void **)p->workspace[worker].weight + p->weight_at[node];
}

static void move(const keel_program *p, const keel_moved *m, int worker)
{
    const keel_graph_node *n = &p->graph->node[m->node];
    const keel_workspace *s = &p->workspace[worker];
    const size_t element = keel_dtype_size(p->store->real);
    const int at = p->weight_at[m->node];
    double *merged = s->host.merged, *copy = merged + m->at;
    void **weight = weights_of(p, m, p->lanes->n_worker + worker); /* as the host has them */
    void **seen = weights_of(p, m, worker);
    for (int k = 0; k < n->node.n_weight; k++) {
        const int64_t count = p->store->weight[n->weight[k]].count;
        weight[k] = p->weight[at + k];
        seen[k] = s->weight[at + k];
        if (p->trains[n->weight[k]]) continue;
        memcpy(copy, weight[k], (size_t)count * element);
        weight[k] = copy;
        seen[k] = s->merged + (copy - merged);
        copy += count;
    }
    for (int k = 0; k < m->n_mover; k++) {
        const keel_node *t = &p->graph->node[m->mover[k]].node;
        t->op->commit(t, merged + p->merged_at[m->mover[k]], weight);
    }
    keel_on_device_merged(s, merged + m->at, copy - merged - m->at);
}

void keel_moved_see(const keel_program *p, int merged, int worker)
{
    for (int i = merged + 1; p->moved_of && i < p->graph->n_node; i++)
        if (p->moved_of[i] && p->moved_of[i]->last == merged) move(p, p->moved_of[i], worker);
}
