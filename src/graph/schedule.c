/* See schedule.h. */
#include "graph/schedule.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

/* The size of values that a call may leave for the next one. 1, 2, 4 and 8 MiB were equally fast.
 */
enum { CACHE_BYTES = 2 << 20 };

typedef struct maker {
    const keel_graph *g;
    const bool *trainable;
    bool on_device;
    int64_t micro_batch; /* see keel_schedule_make */
    int *held;           /* [n_node] whose weight gradients wait for the end of the segment */
    int n_held;
    bool holds;    /* one of them reads values of all rows */
    bool *by_all;  /* [n_variable] all workers compute parts of its gradient */
    int *deferred; /* [n_node] nodes whose weight gradients come after those that all workers
                      compute */
    int n_deferred;
    keel_schedule s;
    int capacity_instruction, capacity_segment;
} maker;

static keel_status begin_segment(maker *m, int merge, bool merge_backward)
{
    keel_schedule *s = &m->s;
    if (s->n_segment == m->capacity_segment) {
        const int capacity = 2 * m->capacity_segment + 8;
        void *p = keel_grow(s->segment, (size_t)capacity, sizeof *s->segment);
        if (!p) return KEEL_ENOMEM;
        s->segment = p;
        m->capacity_segment = capacity;
    }
    if (s->n_segment > 0 && merge >= 0) s->segment[s->n_segment - 1].meets = true;
    const int at = s->n_instruction;
    s->segment[s->n_segment++] = (keel_segment){
        .merge = merge, .merge_backward = merge_backward, .begin = at, .weights = at, .end = at
    };
    return KEEL_OK;
}

static keel_status add(maker *m, keel_run_kind kind, int node)
{
    keel_schedule *s = &m->s;
    if (s->n_instruction == m->capacity_instruction) {
        const int capacity = 2 * m->capacity_instruction + 64;
        void *p = keel_grow(s->instruction, (size_t)capacity, sizeof *s->instruction);
        if (!p) return KEEL_ENOMEM;
        s->instruction = p;
        m->capacity_instruction = capacity;
    }
    s->instruction[s->n_instruction++] = (keel_instruction){ .kind = kind, .node = node };
    keel_segment *last = &s->segment[s->n_segment - 1];
    last->end = s->n_instruction;
    if (kind != KEEL_RUN_WEIGHTS || s->at_once) last->weights = s->n_instruction;
    return KEEL_OK;
}

/* Ends a segment with its weight gradients, because the memory that they read is free afterwards.
 * Statistics of what backward has just written go before them, while it is in the cache. */
static keel_status end_segment(maker *m, int merge, bool merge_backward)
{
    for (int k = 0; k < m->n_held; k++) KEEL_TRY(add(m, KEEL_RUN_WEIGHTS, m->held[k]));
    m->n_held = 0;
    m->holds = false;
    return begin_segment(m, merge, merge_backward);
}

static int64_t spec_bytes(const keel_spec *s) /* of one row */
{
    return keel_row_count(s) * (int64_t)keel_dtype_size(s->dtype);
}

static bool has_trainable(const maker *m, const keel_graph_node *n)
{
    for (int i = 0; i < n->node.n_weight && !n->frozen; i++)
        if (m->trainable[n->weight[i]]) return true;
    return false;
}

/* A value needs a gradient if a trainable weight lies before it, or an input whose gradient is
 * wanted. */
static void find_needs(maker *m)
{
    for (int i = 0; m->g->backward && i < m->g->n_wanted; i++)
        m->s.needs_grad[keel_graph_input_value(m->g, m->g->wanted[i])] = true;
    for (int i = 0; i < m->g->n_node; i++) {
        const keel_graph_node *n = &m->g->node[i];
        bool need = has_trainable(m, n);
        for (int k = 0; k < n->node.n_in; k++) need = need || m->s.needs_grad[n->in[k]];
        need = need && m->g->backward && n->node.op->backward[0] != NULL;
        for (int k = 0; k < n->node.n_out; k++)
            m->s.needs_grad[n->out[k]] = need && keel_dtype_flows(n->node.out[k].dtype);
    }
}

/* Finds weights whose gradients owners make tile by tile: the op can do it, a row has one place,
 * and no other node uses the weights. */
static void find_tiled(maker *m, const int *uses)
{
    for (int i = 0; i < m->g->n_node; i++) {
        const keel_graph_node *n = &m->g->node[i];
        bool tiled = m->g->backward && !m->on_device && m->micro_batch <= 0 && !n->frozen &&
                     n->node.op->weights_tile[0] && n->node.n_in == 1 &&
                     n->node.held != KEEL_FLOAT16 && /* no kernel reads it tile by tile */
                     n->node.in[0].shape.rank == 1;
        for (int k = 0; k < n->node.n_weight; k++) tiled = tiled && uses[n->weight[k]] == 1;
        m->s.tiled[i] = tiled;
    }
}

static keel_status forward(maker *m)
{
    KEEL_TRY(begin_segment(m, -1, false));
    for (int i = 0; i < m->g->n_node; i++) {
        const keel_node *n = &m->g->node[i].node;
        if (n->op->loss && m->g->backward) continue;
        if (n->partial > 0) {
            KEEL_TRY(add(m, KEEL_RUN_PARTIAL, i));
            KEEL_TRY(begin_segment(m, i, false));
        }
        KEEL_TRY(add(m, KEEL_RUN_FORWARD, i));
    }
    return KEEL_OK;
}

/* Whether the node's weight gradient reads values of rows, and so keeps them alive. */
static bool reads_values(const keel_node *n)
{
    return !keel_weights_from_merged(n);
}

/* Finds the weights of which all workers compute gradients. */
static void find_by_all(maker *m)
{
    for (int i = 0; i < m->g->n_node; i++) {
        const keel_graph_node *n = &m->g->node[i];
        for (int k = 0; k < n->node.n_weight && !n->frozen; k++)
            m->by_all[n->weight[k]] = m->by_all[n->weight[k]] || reads_values(&n->node);
    }
}

/* A gradient that one worker reads from a merged record, of a weight for which all workers compute
 * parts elsewhere. It is added to one of these parts when they are complete. */
static bool is_deferred(const maker *m, const keel_graph_node *n)
{
    bool deferred = false;
    for (int k = 0; k < n->node.n_weight; k++)
        deferred = deferred || (m->trainable[n->weight[k]] && m->by_all[n->weight[k]]);
    return deferred && !reads_values(&n->node);
}

/* If a layer is called twice, the first call in the order overwrites the gradients, and the others
 * add. */
static keel_status weights(maker *m, int i)
{
    const keel_graph_node *n = &m->g->node[i];
    int all = 0, given = 0;
    uint32_t first = 0;
    if (n->node.n_weight > 32)
        return keel_fail(KEEL_EUNSUP, "layer '%s' has more than 32 weights", n->node.layer);
    if (!m->s.tiled[i] && m->s.at_once) KEEL_TRY(add(m, KEEL_RUN_WEIGHTS, i));
    if (!m->s.tiled[i] && !m->s.at_once) {
        m->held[m->n_held++] = i;
        m->holds = m->holds || reads_values(&n->node);
    }
    for (int k = n->node.n_weight - 1; k >= 0; k--) {
        const keel_variable v = n->weight[k];
        if (!m->trainable[v]) continue;
        all++;
        given += m->s.reached[v];
        if (!m->s.reached[v]) first |= UINT32_C(1) << k;
        m->s.reached[v] = true;
        m->s.order[m->s.n_order++] = v;
    }
    if (given > 0 && given < all) m->s.weight_clears[i] = first;
    m->s.weight_adds[i] = given > 0;
    return KEEL_OK;
}

static keel_status backward_node(maker *m, int i)
{
    const keel_graph_node *n = &m->g->node[i];
    bool *const written = m->s.has_grad;
    bool asked = n->node.op->loss, reached = asked;
    for (int k = 0; k < n->node.n_out; k++) reached = reached || written[n->out[k]];
    if (!reached) {
        m->s.tiled[i] = false;
        return KEEL_OK;
    }
    if (n->node.partial_backward > 0) {
        KEEL_TRY(add(m, KEEL_RUN_PARTIAL_BACKWARD, i));
        KEEL_TRY(end_segment(m, i, true));
    } else if (m->holds && !n->node.op->view) {
        KEEL_TRY(end_segment(m, -1, false));
    }
    for (int k = 0; k < n->node.n_in; k++) {
        if (!m->s.needs_grad[n->in[k]]) continue;
        asked = true;
        m->s.in_adds[i][k] = written[n->in[k]];
        written[n->in[k]] = true;
    }
    if (asked || (n->node.op->weights_after_backward && has_trainable(m, n)))
        KEEL_TRY(add(m, KEEL_RUN_BACKWARD, i));
    if (!has_trainable(m, n)) return KEEL_OK;
    if (!is_deferred(m, n)) return weights(m, i);
    m->deferred[m->n_deferred++] = i;
    return KEEL_OK;
}

/* Bytes of weights that a call reads, independent of its number of rows. */
static int64_t weight_bytes(const keel_node *n)
{
    int64_t bytes = 0;
    for (int k = 0; k < n->n_weight; k++) {
        const int64_t one = spec_bytes(&n->weight[k]);
        const int64_t reads = n->op->weight_reads ? n->op->weight_reads(n, k) : 1;
        if (reads > 0)
            bytes += one <= (INT64_MAX - bytes) / reads ? one * reads : INT64_MAX - bytes;
    }
    return bytes;
}

/* What instructions need of a core's cache. */
typedef struct needs {
    int64_t values;  /* bytes of a row that a call reads and writes, of the call that has most */
    int64_t weights; /* bytes of weights that a call reads, of the call that reads most */
} needs;

static void add_needs(needs *x, const keel_node *n)
{
    int64_t bytes = 0;
    for (int k = 0; k < n->n_out; k++) bytes += spec_bytes(&n->out[k]);
    for (int k = 0; k < n->n_in; k++) bytes += spec_bytes(&n->in[k]);
    if (bytes > x->values) x->values = bytes;
    bytes = weight_bytes(n);
    if (bytes > x->weights) x->weights = bytes;
}

/* How many rows a block has: so few that the values of one call stay in a core's cache, but so many
 * that the weights, which each call reads again, are not larger than the values. If values are
 * small a block is a whole shard, since kernels are faster on many rows. */
static int64_t block_of(const needs *x)
{
    const int64_t bytes = x->weights < CACHE_BYTES ? CACHE_BYTES : x->weights;
    return bytes > x->values ? bytes / (x->values > 0 ? x->values : 1) : 1;
}

static void find_blocks(maker *m)
{
    for (int g = 0; g < m->s.n_segment; g++) {
        keel_segment *s = &m->s.segment[g];
        needs x = { 0 };
        for (int at = s->begin; at < s->weights; at++)
            add_needs(&x, &m->g->node[m->s.instruction[at].node].node);
        s->block = m->on_device ? INT32_MAX : block_of(&x);
        if (m->s.at_once && m->micro_batch > 0) s->block = m->micro_batch;
    }
}

/* Bytes of gradients that the node's weights get, wherever it has rows. */
static double gradient_bytes(const maker *m, int i)
{
    const keel_graph_node *n = &m->g->node[i];
    double bytes = 0;
    for (int k = 0; k < n->node.n_weight && !n->frozen && !m->s.tiled[i]; k++) {
        const bool few = n->node.op->weight_reads && n->node.op->weight_reads(&n->node, k) == 0;
        if (m->trainable[n->weight[k]] && !few) bytes += (double)spec_bytes(&n->node.weight[k]);
    }
    return bytes;
}

/* Whether a block should go through all of forward and backward before the next one begins, so that
 * backward finds its values in the cache. The last level must have room for them, and gradients of
 * weights, which are read and written for each block then, must be small beside them. Neither the
 * rows of a step nor devices matter, for no bit may depend on them. */
static bool gains_at_once(const maker *m)
{
    enum { TIMES = 4, ROOM = 8 << 20 };
    double gradients = 0, values = 0;
    needs x = { 0 };
    if (!m->g->backward || m->on_device || keel_schedule_waits(m->g)) return false;
    for (int i = 0; i < m->g->n_node; i++) {
        const keel_node *n = &m->g->node[i].node;
        const bool overwrites = n->op->view || n->op->inplace; /* mostly: what it reads */
        add_needs(&x, n);
        for (int k = 0; k < n->n_out && !overwrites; k++) values += (double)spec_bytes(&n->out[k]);
        for (int k = 0; k < n->n_saved; k++) values += (double)spec_bytes(&n->saved[k]);
        gradients += gradient_bytes(m, i);
    }
    values *= (double)block_of(&x);
    return values <= ROOM && TIMES * gradients <= values;
}

const keel_graph_node *keel_schedule_waits(const keel_graph *g)
{
    for (int i = 0; i < g->n_node; i++)
        if (g->node[i].node.partial > 0 || g->node[i].node.partial_backward > 0) return &g->node[i];
    return NULL;
}

static keel_status check_micro(const maker *m)
{
    const keel_graph_node *n = keel_schedule_waits(m->g);
    if (m->micro_batch <= 0 || !m->g->backward) return KEEL_OK;
    if (m->on_device)
        return keel_fail(KEEL_EUNSUP, "micro-batches are for CPU devices only: a device with "
                                      "memory of its own computes all its rows at once");
    if (!n) return KEEL_OK;
    if (n->node.op->loss)
        return keel_fail(KEEL_EUNSUP,
                         "the loss ('%s') depends on values, weights or masks of all rows of a "
                         "step together, so this model cannot be trained in micro-batches",
                         n->node.layer);
    return keel_fail(KEEL_EUNSUP,
                     "layer '%s' (%s) must see all rows of a step before it goes on, so this model "
                     "cannot be trained in micro-batches",
                     n->node.layer, n->node.op->name);
}

static int by_turn(const void *a, const void *b)
{
    const keel_turn *p = a, *q = b;
    if (p->turn != q->turn) return p->turn < q->turn ? -1 : 1;
    return p->node < q->node ? -1 : p->node > q->node;
}

bool keel_schedule_same_state(const keel_graph_node *a, const keel_graph_node *b)
{
    const int n = a->node.n_weight;
    return a->node.op == b->node.op && n > 0 && n == b->node.n_weight &&
           !memcmp(a->weight, b->weight, (size_t)n * sizeof *a->weight);
}

bool keel_schedule_moves(const keel_schedule *s, int node)
{
    for (int k = 0; k < s->n_commit; k++)
        if (s->commit[k].node == node) return true;
    return false;
}

/* Whether a call that is made again finds its state moved, by an earlier call of the layer. */
static bool is_moved(const maker *m, const keel_graph_node *n)
{
    for (int k = 0; n->repeats && k < m->s.n_commit; k++) {
        const keel_graph_node *t = &m->g->node[m->s.commit[k].node];
        if (t->repeats != n->repeats && keel_schedule_same_state(t, n)) return true;
    }
    return false;
}

/* If several nodes move the same state, each continues from the one before. */
static keel_status order_commits(maker *m)
{
    const keel_graph *g = m->g;
    int n = 0;
    for (int i = 0; i < g->n_node; i++) n += g->node[i].node.op->commit && g->node[i].node.training;
    m->s.commit = keel_calloc((size_t)n, sizeof *m->s.commit);
    if (!m->s.commit) return KEEL_ENOMEM;
    for (int i = 0; i < g->n_node; i++)
        if (g->node[i].node.op->commit && g->node[i].node.training && !is_moved(m, &g->node[i]))
            m->s.commit[m->s.n_commit++] = (keel_turn){ g->node[i].turn, i };
    if (m->s.n_commit) qsort(m->s.commit, (size_t)m->s.n_commit, sizeof *m->s.commit, by_turn);
    return KEEL_OK;
}

keel_status keel_schedule_make(keel_schedule *out, const keel_graph *g, const bool *trainable,
                               int n_variable, bool on_device, int64_t micro_batch)
{
    maker m = {
        .g = g, .trainable = trainable, .on_device = on_device, .micro_batch = micro_batch
    };
    keel_status s = KEEL_ENOMEM;
    int *uses = keel_calloc((size_t)n_variable, sizeof *uses);
    m.s.needs_grad = keel_calloc((size_t)g->n_value, sizeof *m.s.needs_grad);
    m.s.has_grad = keel_calloc((size_t)g->n_value, sizeof *m.s.has_grad);
    m.s.reached = keel_calloc((size_t)n_variable, sizeof *m.s.reached);
    m.by_all = keel_calloc((size_t)n_variable, sizeof *m.by_all);
    m.deferred = keel_calloc((size_t)g->n_node, sizeof *m.deferred);
    m.s.weight_adds = keel_calloc((size_t)g->n_node, sizeof *m.s.weight_adds);
    m.s.tiled = keel_calloc((size_t)g->n_node, sizeof *m.s.tiled);
    m.s.again = keel_calloc((size_t)g->n_node, sizeof *m.s.again);
    m.s.weight_clears = keel_calloc((size_t)g->n_node, sizeof *m.s.weight_clears);
    m.s.in_adds = keel_calloc((size_t)g->n_node, sizeof *m.s.in_adds);
    m.held = keel_calloc((size_t)g->n_node, sizeof *m.held);
    size_t n_use = 0;
    for (int i = 0; i < g->n_node; i++) n_use += (size_t)g->node[i].node.n_weight;
    m.s.order = keel_calloc(n_use, sizeof *m.s.order);
    if (!m.s.weight_clears || !uses || !m.by_all || !m.deferred || !m.s.tiled || !m.s.again ||
        !m.s.needs_grad || !m.s.has_grad || !m.s.reached || !m.held || !m.s.weight_adds ||
        !m.s.in_adds || !m.s.order)
        goto out;
    for (int i = 0; i < g->n_node; i++) {
        m.s.in_adds[i] = keel_calloc((size_t)g->node[i].node.n_in, sizeof(bool));
        if (!m.s.in_adds[i]) goto out;
    }
    for (int i = 0; i < g->n_node; i++)
        for (int k = 0; k < g->node[i].node.n_weight && !g->node[i].frozen; k++)
            uses[g->node[i].weight[k]]++;
    find_needs(&m);
    find_tiled(&m, uses);
    find_by_all(&m);
    if ((s = check_micro(&m)) < 0) goto out;
    m.s.at_once = g->backward && (micro_batch ? micro_batch > 0 : gains_at_once(&m));
    if ((s = order_commits(&m)) < 0) goto out;
    if ((s = forward(&m)) < 0) goto out;
    if (g->backward) {
        if (!m.s.at_once && (s = begin_segment(&m, -1, false)) < 0) goto out;
        for (int i = g->n_node - 1; i >= 0; i--)
            if ((s = backward_node(&m, i)) < 0) goto out;
        for (int k = 0; k < m.n_deferred; k++)
            if ((s = weights(&m, m.deferred[k])) < 0) goto out;
        if (m.n_held > 0 && (s = end_segment(&m, -1, false)) < 0) goto out;
    }
    find_blocks(&m);
    *out = m.s;
    m.s = (keel_schedule){ 0 };
    s = KEEL_OK;
out:
    keel_free(uses);
    keel_free(m.by_all);
    keel_free(m.deferred);
    keel_free(m.held);
    keel_schedule_free(&m.s, g);
    return s;
}

keel_pass keel_run_pass(keel_run_kind kind)
{
    static const keel_pass pass[] = {
        [KEEL_RUN_FORWARD] = KEEL_FORWARD,
        [KEEL_RUN_PARTIAL] = KEEL_PARTIAL,
        [KEEL_RUN_AGAIN] = KEEL_FORWARD,
        [KEEL_RUN_BACKWARD] = KEEL_BACKWARD,
        [KEEL_RUN_PARTIAL_BACKWARD] = KEEL_PARTIAL_BACKWARD,
        [KEEL_RUN_WEIGHTS] = KEEL_WEIGHTS,
    };
    return pass[kind];
}

void keel_schedule_free(keel_schedule *s, const keel_graph *g)
{
    for (int i = 0; s->in_adds && i < g->n_node; i++) keel_free(s->in_adds[i]);
    keel_free(s->in_adds);
    keel_free(s->weight_adds);
    keel_free(s->weight_clears);
    keel_free(s->needs_grad);
    keel_free(s->has_grad);
    keel_free(s->reached);
    keel_free(s->tiled);
    keel_free(s->again);
    keel_free(s->order);
    keel_free(s->commit);
    keel_free(s->instruction);
    keel_free(s->segment);
    *s = (keel_schedule){ 0 };
}
