/* See recompute.h. */
#include "graph/recompute.h"
#include "base/memory.h"
#include <limits.h>

typedef struct chooser {
    keel_schedule *s;
    const keel_lives *l;
    const keel_graph *g;
    int *last;      /* [n_value] the last call of forward that reads the value, or makes it */
    int *first;     /* [n_value] the first one of backward that reads it; INT_MAX: none does */
    bool *pinned;   /* [n_value] something is made again from it, so it is kept */
    int64_t *live;  /* [n_instruction] bytes of a row that are kept for all rows */
    int *place;     /* [n_node] 1 + the instruction in front of which it runs again; 0: none */
    int *candidate; /* [n] nodes whose values could be made again */
    int n, n_again;
} chooser;

/* ---- which could be -------------------------------------------------------------------------- */

/* Whether the op can run twice in a step, for less than a product costs. */
static bool is_light(const keel_node *n)
{
    return !n->op->flops && !n->op->loss && !n->op->view && n->n_out == 1 && n->sums == 0 &&
           !n->reads_state;
}

static void find_reads(const chooser *x)
{
    int *last = x->last, *first = x->first;
    for (int v = 0; v < x->g->n_value; v++) first[v] = INT_MAX;
    for (int at = 0; at < x->s->n_instruction; at++) {
        const keel_instruction *in = &x->s->instruction[at];
        const keel_graph_node *n = &x->g->node[in->node];
        const unsigned reads = keel_pass_reads(&n->node, keel_run_pass(in->kind));
        if (!keel_is_backward(in->kind)) {
            for (int k = 0; k < n->node.n_in; k++) last[n->in[k]] = at;
            for (int k = 0; k < n->node.n_out && in->kind == KEEL_RUN_FORWARD; k++)
                last[n->out[k]] = at;
            continue;
        }
        for (int k = 0; k < n->node.n_in; k++)
            if (keel_reads_in(reads, k) && first[n->in[k]] == INT_MAX) first[n->in[k]] = at;
        for (int k = 0; k < n->node.n_out; k++)
            if (keel_reads_out(reads, k) && first[n->out[k]] == INT_MAX) first[n->out[k]] = at;
    }
}

/* The node that makes the value, if it would have to run again in front of instruction `at` for it
 * to be there; -1: it is there. */
static int missing_maker(const chooser *x, keel_value v, int at)
{
    return keel_life_is_input(x->l, v) || x->l->life[v].until >= at ? -1 : x->g->value[v].node;
}

/* Whether the node can run in front of instruction `at`, perhaps behind those that make some of its
 * inputs, of which all inputs must be there. Backward reads what they make nowhere else. */
static bool can_run(const chooser *x, const keel_graph_node *n, int at, bool behind)
{
    for (int k = 0; k < n->node.n_in; k++) {
        const int maker = missing_maker(x, n->in[k], at);
        if (maker < 0) continue;
        const keel_graph_node *m = &x->g->node[maker];
        if (!behind || !is_light(&m->node) || x->first[n->in[k]] < INT_MAX) return false;
        if (!can_run(x, m, at, false)) return false;
    }
    return true;
}

/* Of the buffers that share the memory of a root, the one that is read last, and when the others
 * are. */
typedef struct shared {
    int longest, others;
} shared;

static void find_shared(const chooser *x, shared *of)
{
    const keel_life *life = x->l->life;
    for (int b = 0; b < x->l->n; b++) of[b] = (shared){ -1, -1 };
    for (int b = 0; b < x->l->n; b++) {
        shared *s = &of[keel_life_root(x->l, b)];
        const int before = s->longest, lasts = before < 0 ? -1 : life[before].until;
        const bool longer = before < 0 || life[b].until > lasts;
        const int other = longer ? lasts : life[b].until;
        if (longer) s->longest = b;
        if (other > s->others) s->others = other;
    }
}

/* Puts the values into the list whose memory is between forward and backward only theirs, and only
 * because backward reads them. */
static keel_status find_candidates(chooser *x)
{
    shared *memory = keel_calloc((size_t)x->l->n, sizeof *memory);
    if (!memory) return KEEL_ENOMEM;
    find_shared(x, memory);
    find_reads(x);
    for (int i = 0; i < x->g->n_node; i++) {
        const keel_graph_node *n = &x->g->node[i];
        if (!is_light(&n->node)) continue;
        const keel_value v = n->out[0];
        const int last = x->last[v], first = x->first[v];
        const shared *s = &memory[keel_life_root(x->l, v)];
        if (first == INT_MAX || first <= last + 1) continue;
        if (s->longest != v || s->others > last) continue;
        if (x->l->life[v].until < x->s->n_instruction && can_run(x, n, first, true))
            x->candidate[x->n++] = i;
    }
    keel_free(memory);
    return KEEL_OK;
}

/* ---- which are ------------------------------------------------------------------------------- */

/* What lives inside one segment has few rows, unless all of it is one. */
static void find_live(const chooser *x)
{
    for (int b = 0; b < x->l->n; b++) {
        const keel_life *l = &x->l->life[b];
        if (!(x->s->at_once ? keel_life_is_placed(x->l, b) : keel_life_has_all_rows(x->l, b)))
            continue;
        for (int at = l->first; at <= l->last && at < x->s->n_instruction; at++)
            x->live[at] += l->row_bytes;
    }
}

/* Whether what the node reads in front of instruction `at` will be there: nothing of it is made
 * again elsewhere. Chains would have to be kept, too. */
static bool is_free(const chooser *x, const keel_graph_node *n, int at)
{
    if (x->pinned[n->out[0]]) return false;
    for (int k = 0; k < n->node.n_in; k++) {
        const int maker = x->g->value[n->in[k]].node;
        if (maker < 0) continue;
        if (x->place[maker]) return false;
        if (missing_maker(x, n->in[k], at) == maker && !is_free(x, &x->g->node[maker], at))
            return false;
    }
    return true;
}

/* The node runs again in front of instruction `at`, behind those that make what it misses. */
static void run_again(chooser *x, int node, int at)
{
    const keel_graph_node *n = &x->g->node[node];
    if (x->place[node]) return; /* it makes two inputs of a node */
    x->place[node] = 1 + at;
    x->n_again++;
    for (int k = 0; k < n->node.n_in; k++) {
        const int maker = missing_maker(x, n->in[k], at);
        if (maker >= 0)
            run_again(x, maker, at);
        else
            x->pinned[n->in[k]] = true;
    }
}

/* The place where most lives gets smaller, as long as a candidate is kept there. */
static void choose(chooser *x)
{
    for (;;) {
        int most = 0, best = -1;
        int64_t bytes = 0; /* of the best one's value */
        for (int at = 1; at < x->s->n_instruction; at++)
            if (x->live[at] > x->live[most]) most = at;
        for (int i = 0; i < x->n; i++) {
            const keel_graph_node *n = &x->g->node[x->candidate[i]];
            const keel_value v = n->out[0];
            if (x->place[x->candidate[i]] || x->last[v] >= most || x->first[v] <= most) continue;
            if (x->l->life[v].row_bytes <= bytes || !is_free(x, n, x->first[v])) continue;
            best = x->candidate[i];
            bytes = x->l->life[v].row_bytes;
        }
        if (best < 0) return;
        const keel_value v = x->g->node[best].out[0];
        run_again(x, best, x->first[v]);
        for (int at = x->last[v] + 1; at < x->first[v]; at++) x->live[at] -= bytes;
    }
}

/* ---- the instructions ------------------------------------------------------------------------ */

/* The same place, or in front of the first weight gradient of its segment, since these run once
 * over all rows. */
static int in_blocks(const keel_schedule *s, int at)
{
    int g = 0;
    while (s->segment[g].end <= at) g++;
    return at < s->segment[g].weights ? at : s->segment[g].weights;
}

static keel_status add_instructions(const chooser *x)
{
    keel_schedule *s = x->s;
    int n = 0, *head = keel_calloc((size_t)s->n_instruction, sizeof *head); /* lists: 1 + node */
    int *next = keel_calloc((size_t)x->g->n_node, sizeof *next);
    keel_instruction *all = keel_calloc((size_t)(s->n_instruction + x->n_again), sizeof *all);
    const bool room = head && next && all;
    for (int i = x->g->n_node - 1; room && i >= 0; i--) {
        if (!x->place[i]) continue;
        int *at = &head[in_blocks(s, x->place[i] - 1)];
        next[i] = *at;
        *at = 1 + i;
        s->again[i] = true;
    }
    for (int g = 0; room && g < s->n_segment; g++) {
        keel_segment *segment = &s->segment[g];
        const keel_segment was = *segment;
        segment->begin = n;
        for (int at = was.begin; at < was.end; at++) {
            for (int i = head[at]; i > 0; i = next[i - 1])
                all[n++] = (keel_instruction){ KEEL_RUN_AGAIN, i - 1 };
            if (at == was.weights) segment->weights = n;
            all[n++] = s->instruction[at];
        }
        segment->end = n;
        if (was.weights == was.end) segment->weights = n;
    }
    keel_free(head);
    keel_free(next);
    if (!room) {
        keel_free(all);
        return KEEL_ENOMEM;
    }
    keel_free(s->instruction);
    s->instruction = all;
    s->n_instruction = n;
    return KEEL_OK;
}

keel_status keel_recompute(keel_schedule *s, const keel_lives *l)
{
    chooser x = { .s = s, .l = l, .g = l->g };
    keel_status status = KEEL_ENOMEM;
    x.last = keel_calloc((size_t)l->g->n_value, sizeof *x.last);
    x.first = keel_calloc((size_t)l->g->n_value, sizeof *x.first);
    x.pinned = keel_calloc((size_t)l->g->n_value, sizeof *x.pinned);
    x.live = keel_calloc((size_t)s->n_instruction, sizeof *x.live);
    x.place = keel_calloc((size_t)l->g->n_node, sizeof *x.place);
    x.candidate = keel_calloc((size_t)l->g->n_node, sizeof *x.candidate);
    const bool room = x.last && x.first && x.pinned && x.live && x.place && x.candidate;
    if (room && find_candidates(&x) >= 0) {
        find_live(&x);
        choose(&x);
        status = add_instructions(&x);
    }
    keel_free(x.last);
    keel_free(x.first);
    keel_free(x.pinned);
    keel_free(x.live);
    keel_free(x.place);
    keel_free(x.candidate);
    return status;
}
