/* See recompute.h. */
#include "graph/recompute.h"
#include "base/memory.h"
#include <limits.h>

/* A value that could be made again. */
typedef struct candidate {
    int node;
    int last;  /* the last call of forward that reads it, or that makes it */
    int first; /* the first one of backward that reads it */
    int64_t bytes;
    bool chosen;
} candidate;

/* When a value is read, by numbers of instructions. */
typedef struct uses {
    int forward;  /* last in forward, or when it is made; -1: forward does not make it */
    int backward; /* first in backward; INT_MAX: never */
    int last;
} uses;

typedef struct chooser {
    keel_schedule *s;
    const keel_lives *l;
    const keel_graph *g;
    uses *read;    /* [n_value] */
    bool *shared;  /* [l->n] a root whose memory others have, too */
    bool *pinned;  /* [n_value] something is made again from it, so it is kept */
    int64_t *live; /* [n_instruction] bytes of a row that are kept for all rows */
    candidate *of; /* [n] */
    int n;
} chooser;

/* ---- which could be -------------------------------------------------------------------------- */

/* Whether the op can run twice in a step, for less than a product costs. */
static bool is_light(const keel_node *n)
{
    return !n->op->flops && !n->op->loss && !n->op->view && n->n_out == 1 && n->sums == 0 &&
           !n->reads_state;
}

static void note(uses *r, int at, bool backward)
{
    if (!backward) r->forward = at;
    if (backward && r->backward == INT_MAX) r->backward = at;
    r->last = at;
}

static void find_reads(const chooser *x)
{
    for (int v = 0; v < x->g->n_value; v++) x->read[v] = (uses){ -1, INT_MAX, -1 };
    for (int at = 0; at < x->s->n_instruction; at++) {
        const keel_instruction *in = &x->s->instruction[at];
        const keel_graph_node *n = &x->g->node[in->node];
        const unsigned reads = keel_instruction_reads(&n->node, in->kind);
        const bool backward = keel_is_backward(in->kind);
        for (int k = 0; k < n->node.n_in; k++)
            if (keel_reads_in(reads, k)) note(&x->read[n->in[k]], at, backward);
        for (int k = 0; k < n->node.n_out; k++)
            if (in->kind == KEEL_RUN_FORWARD || (backward && keel_reads_out(reads, k)))
                note(&x->read[n->out[k]], at, backward);
    }
}

/* Whether the node can run in front of instruction `at`: others read its inputs there or later. */
static bool has_inputs(const chooser *x, const keel_graph_node *n, int at)
{
    for (int k = 0; k < n->node.n_in; k++)
        if (!keel_life_is_input(x->l, n->in[k]) && x->read[n->in[k]].last < at) return false;
    return true;
}

/* Values that have their memory alone, between forward and backward only because that reads them.
 */
static void find_candidates(chooser *x)
{
    find_reads(x);
    for (int b = 0; b < x->l->n; b++)
        if (x->l->life[b].root != b) x->shared[keel_life_root(x->l, b)] = true;
    for (int i = 0; i < x->g->n_node; i++) {
        const keel_graph_node *n = &x->g->node[i];
        if (!is_light(&n->node)) continue;
        const keel_value v = n->out[0];
        const keel_life *l = &x->l->life[v];
        const uses *r = &x->read[v];
        if (r->forward < 0 || r->backward == INT_MAX || r->backward <= r->forward + 1) continue;
        if (l->root != v || x->shared[v] || l->last >= x->s->n_instruction) continue;
        if (has_inputs(x, n, r->backward))
            x->of[x->n++] = (candidate){ i, r->forward, r->backward, l->row_bytes, false };
    }
}

/* ---- which are ------------------------------------------------------------------------------- */

/* What lives inside one segment has few rows. */
static void find_live(const chooser *x)
{
    for (int b = 0; b < x->l->n; b++) {
        const keel_life *l = &x->l->life[b];
        if (!keel_life_has_all_rows(x->l, b)) continue;
        for (int at = l->first; at <= l->last && at < x->s->n_instruction; at++)
            x->live[at] += l->row_bytes;
    }
}

/* Whether nothing is made from what is to be made again: chains would have to be kept, too. */
static bool is_free(const chooser *x, const candidate *c)
{
    const keel_graph_node *n = &x->g->node[c->node];
    if (x->pinned[n->out[0]]) return false;
    for (int k = 0; k < n->node.n_in; k++) {
        const int maker = x->g->value[n->in[k]].node;
        if (maker >= 0 && x->s->again[maker]) return false;
    }
    return true;
}

static void choose(chooser *x, candidate *c)
{
    const keel_graph_node *n = &x->g->node[c->node];
    c->chosen = x->s->again[c->node] = true;
    for (int k = 0; k < n->node.n_in; k++) x->pinned[n->in[k]] = true;
    for (int at = c->last + 1; at < c->first; at++) x->live[at] -= c->bytes;
}

/* The place where most lives gets smaller, as long as a candidate is kept there. */
static int choose_all(chooser *x)
{
    for (int n = 0;; n++) {
        int most = 0;
        candidate *best = NULL;
        for (int at = 1; at < x->s->n_instruction; at++)
            if (x->live[at] > x->live[most]) most = at;
        for (int i = 0; i < x->n; i++) {
            candidate *c = &x->of[i];
            if (c->chosen || c->last >= most || c->first <= most || !is_free(x, c)) continue;
            if (!best || c->bytes > best->bytes) best = c;
        }
        if (!best) return n;
        choose(x, best);
    }
}

/* ---- the instructions ------------------------------------------------------------------------ */

/* The instruction in front of which a node runs: `first`, or the first weight gradient of its
 * segment, since these run once over all rows. */
static int place_of(const keel_schedule *s, int first)
{
    int g = 0;
    while (s->segment[g].end <= first) g++;
    return first < s->segment[g].weights ? first : s->segment[g].weights;
}

static keel_status add_instructions(chooser *x, int n_more)
{
    keel_schedule *s = x->s;
    int n = 0, *head = keel_calloc((size_t)s->n_instruction, sizeof *head); /* lists: 1 + index */
    int *next = keel_calloc((size_t)x->n, sizeof *next);
    keel_instruction *all = keel_calloc((size_t)(s->n_instruction + n_more), sizeof *all);
    const bool room = head && next && all;
    for (int i = x->n - 1; room && i >= 0; i--) {
        if (!x->of[i].chosen) continue;
        int *at = &head[place_of(s, x->of[i].first)];
        next[i] = *at;
        *at = 1 + i;
    }
    for (int g = 0; room && g < s->n_segment; g++) {
        keel_segment *segment = &s->segment[g];
        const keel_segment was = *segment;
        segment->begin = n;
        for (int at = was.begin; at < was.end; at++) {
            for (int i = head[at]; i > 0; i = next[i - 1])
                all[n++] = (keel_instruction){ KEEL_RUN_AGAIN, x->of[i - 1].node };
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
    x.read = keel_calloc((size_t)l->g->n_value, sizeof *x.read);
    x.shared = keel_calloc((size_t)l->n, sizeof *x.shared);
    x.pinned = keel_calloc((size_t)l->g->n_value, sizeof *x.pinned);
    x.live = keel_calloc((size_t)s->n_instruction, sizeof *x.live);
    x.of = keel_calloc((size_t)l->g->n_node, sizeof *x.of);
    if (x.read && x.shared && x.pinned && x.live && x.of) {
        find_candidates(&x);
        find_live(&x);
        status = add_instructions(&x, choose_all(&x));
    }
    keel_free(x.read);
    keel_free(x.shared);
    keel_free(x.pinned);
    keel_free(x.live);
    keel_free(x.of);
    return status;
}
