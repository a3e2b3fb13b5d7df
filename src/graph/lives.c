/* See lives.h. */
#include "graph/lives.h"
#include "base/memory.h"
#include <limits.h>

static int64_t row_bytes(const keel_spec *s)
{
    return keel_shape_count(&s->shape) * (int64_t)keel_dtype_size(s->dtype);
}

int keel_life_root(const keel_lives *l, int b)
{
    while (l->life[b].root != b) b = l->life[b].root;
    return b;
}

bool keel_life_is_placed(const keel_lives *l, int b)
{
    return l->life[b].root == b && l->life[b].first < INT_MAX && !keel_life_is_input(l, b);
}

bool keel_life_has_all_rows(const keel_lives *l, int b)
{
    const keel_life *x = &l->life[b];
    const int most = l->s->n_instruction - 1, last = x->last < most ? x->last : most;
    return keel_life_is_placed(l, b) &&
           (x->whole || l->segment_of[x->first] != l->segment_of[last]);
}

static void touch(keel_lives *l, int buffer, int at, bool whole)
{
    keel_life *x = &l->life[buffer];
    if (at < x->first) x->first = at;
    if (at > x->last) x->last = at;
    x->whole = x->whole || whole;
}

/* The buffer in which a call reads a value. */
static int buffer_of(const keel_lives *l, keel_run_kind kind, keel_value v)
{
    return keel_reads_again(l->s, l->g, kind, v) ? keel_life_again(l, v) : v;
}

/* Whether an instruction has all rows of a worker at a time. */
static bool has_all_rows(const keel_lives *l, const keel_instruction *in)
{
    return in->kind == KEEL_RUN_WEIGHTS && !l->s->at_once;
}

/* What forward saves is written there, and lives from then on. */
static void touch_reads(keel_lives *l, int at)
{
    const keel_instruction *in = &l->s->instruction[at];
    const keel_graph_node *n = &l->g->node[in->node];
    const unsigned reads = keel_pass_reads(&n->node, keel_run_pass(in->kind));
    const bool whole = has_all_rows(l, in), saves = keel_run_pass(in->kind) == KEEL_FORWARD;
    for (int k = 0; k < n->node.n_in; k++)
        if (keel_reads_in(reads, k)) touch(l, buffer_of(l, in->kind, n->in[k]), at, whole);
    for (int k = 0; k < n->node.n_out; k++)
        if (keel_reads_out(reads, k)) touch(l, buffer_of(l, in->kind, n->out[k]), at, whole);
    if (saves || reads & KEEL_READS_SAVED)
        for (int k = 0; k < n->node.n_saved; k++)
            touch(l, keel_life_of_saved(l, in->node, k), at, whole);
}

/* What forward writes: outputs that nobody reads get no buffer. */
static void touch_outputs(keel_lives *l, int at, const bool *is_read)
{
    const keel_graph_node *n = &l->g->node[l->s->instruction[at].node];
    const unsigned later = n->node.op->backward_reads | n->node.op->weights_reads;
    for (int k = 0; k < n->node.n_out; k++)
        if (is_read[n->out[k]] || n->node.n_out == 1 || keel_reads_out(later, k))
            touch(l, n->out[k], at, false);
}

static void touch_grads(keel_lives *l, int at)
{
    const keel_instruction *in = &l->s->instruction[at];
    const keel_graph_node *n = &l->g->node[in->node];
    for (int k = 0; k < n->node.n_out; k++)
        if (l->s->has_grad[n->out[k]])
            touch(l, keel_life_of_grad(l, n->out[k]), at, has_all_rows(l, in));
    if (in->kind != KEEL_RUN_BACKWARD) return;
    for (int k = 0; k < n->node.n_in; k++)
        if (l->s->needs_grad[n->in[k]]) touch(l, keel_life_of_grad(l, n->in[k]), at, false);
}

/* When each buffer is first written and last read, as if it shared its memory with no other. */
static void find(keel_lives *l, const bool *is_read, const keel_value *outputs, int n_output)
{
    const keel_schedule *s = l->s;
    for (int at = 0; at < s->n_instruction; at++) {
        const keel_instruction *in = &s->instruction[at];
        const keel_node *n = &l->g->node[in->node].node;
        if (in->kind == KEEL_RUN_WEIGHTS && keel_weights_from_merged(n)) continue;
        touch_reads(l, at);
        if (in->kind == KEEL_RUN_FORWARD) touch_outputs(l, at, is_read);
        if (in->kind == KEEL_RUN_AGAIN)
            touch(l, keel_life_again(l, l->g->node[in->node].out[0]), at, false);
        if (keel_is_backward(in->kind)) touch_grads(l, at);
    }
    for (int i = 0; i < l->g->n_node; i++) { /* what owners of tiles read is kept until the end */
        if (!s->tiled[i] || s->n_instruction == 0) continue;
        touch(l, l->g->node[i].in[0], s->n_instruction, true);
        touch(l, keel_life_of_grad(l, l->g->node[i].out[0]), s->n_instruction, true);
    }
    for (int i = 0; i < n_output; i++) touch(l, outputs[i], s->n_instruction, true);
    for (int i = 0; i < l->g->n_wanted; i++) {
        const keel_value v = keel_graph_input_value(l->g, l->g->wanted[i]);
        if (s->has_grad[v]) touch(l, keel_life_of_grad(l, v), s->n_instruction, true);
    }
}

/* ---- sharing ---------------------------------------------------------------------------------
 */

/* Puts buffer x where y lies; the memory lives as long as either. */
static void join(keel_lives *l, int x, int y)
{
    keel_life *root = &l->life[keel_life_root(l, y)];
    const keel_life *other = &l->life[x];
    if (other->first < root->first) root->first = other->first;
    if (other->last > root->last) root->last = other->last;
    root->whole = root->whole || other->whole;
    l->life[x].root = root->root;
}

/* Whether instruction `at` may write buffer x over buffer y, which it reads: it must be the last to
 * read anything that lies there, and the first to write x. Besides, only views share memory. */
static bool may_overwrite(const keel_lives *l, int x, int y, int at)
{
    const int root = keel_life_root(l, y);
    return !keel_life_is_input(l, root) && l->life[root].last == at && l->life[x].first == at &&
           l->life[root].row_bytes == l->life[x].row_bytes;
}

/* Whether a call reads the memory of its input k as another input, too. */
static bool reads_twice(const keel_lives *l, const keel_graph_node *n, int k)
{
    for (int i = 0; i < n->node.n_in; i++)
        if (i != k && keel_life_root(l, n->in[i]) == keel_life_root(l, n->in[k])) return true;
    return false;
}

/* The output of a view is its input; the output of a pointwise op may be written over its input. */
static void share_values(keel_lives *l, int node, int at)
{
    const keel_graph_node *n = &l->g->node[node];
    const keel_op *op = n->node.op;
    const bool second = op->inplace_second && n->node.n_in == 2;
    if (op->view) {
        join(l, n->out[0], n->in[0]);
        l->skip_forward[node] = true;
    } else if ((op->inplace || second) && !reads_twice(l, n, second) &&
               may_overwrite(l, n->out[0], n->in[second], at)) {
        join(l, n->out[0], n->in[second]);
    }
}

/* The same for gradients, backwards: the gradient of in[0] may be written over that of the output.
 */
static void share_grads(keel_lives *l, int node, int at)
{
    const keel_graph_node *n = &l->g->node[node];
    const keel_op *op = n->node.op;
    const bool can = op->inplace_second ? keel_weights_from_merged(&n->node)
                                        : (op->view || op->inplace) && n->node.n_in == 1;
    if (!can) return;
    const int x = keel_life_of_grad(l, n->in[0]), y = keel_life_of_grad(l, n->out[0]);
    if (!may_overwrite(l, x, y, at)) return;
    join(l, x, y);
    l->skip_backward[node] = op->view;
}

/* Decides which buffers share memory, in the order of the calls. */
static void share(keel_lives *l)
{
    for (int at = 0; at < l->s->n_instruction; at++) {
        const keel_instruction *in = &l->s->instruction[at];
        if (in->kind == KEEL_RUN_FORWARD) share_values(l, in->node, at);
        if (in->kind == KEEL_RUN_BACKWARD) share_grads(l, in->node, at);
    }
}

/* ---- all of it -------------------------------------------------------------------------------
 */

static void begin(keel_lives *l)
{
    for (int b = 0; b < l->n; b++)
        l->life[b] = (keel_life){ .first = INT_MAX, .last = -1, .root = b };
    for (int v = 0; v < l->g->n_value; v++)
        l->life[v].row_bytes = l->life[keel_life_of_grad(l, v)].row_bytes =
            l->life[keel_life_again(l, v)].row_bytes = row_bytes(&l->g->value[v].spec);
    for (int i = 0; i < l->g->n_node; i++)
        for (int k = 0; k < l->g->node[i].node.n_saved; k++)
            l->life[keel_life_of_saved(l, i, k)].row_bytes =
                row_bytes(&l->g->node[i].node.saved[k]);
}

keel_status keel_lives_find(keel_lives *out, const keel_graph *g, const keel_schedule *s,
                            const int *saved_at, const keel_value *outputs, int n_output)
{
    keel_lives l = { .g = g, .s = s, .saved_at = saved_at };
    bool *is_read = keel_calloc((size_t)g->n_value, sizeof *is_read); /* by a node, or an output */
    l.n = 3 * g->n_value + saved_at[g->n_node];
    l.life = keel_calloc((size_t)l.n, sizeof *l.life);
    l.segment_of = keel_calloc((size_t)s->n_instruction + 1, sizeof *l.segment_of);
    l.skip_forward = keel_calloc((size_t)g->n_node, sizeof *l.skip_forward);
    l.skip_backward = keel_calloc((size_t)g->n_node, sizeof *l.skip_backward);
    const bool room = is_read && l.life && l.segment_of && l.skip_forward && l.skip_backward;
    if (room) {
        for (int k = 0; k < s->n_segment; k++)
            for (int at = s->segment[k].begin; at < s->segment[k].end; at++) l.segment_of[at] = k;
        for (int i = 0; i < g->n_node; i++)
            for (int k = 0; k < g->node[i].node.n_in; k++) is_read[g->node[i].in[k]] = true;
        for (int i = 0; i < n_output; i++) is_read[outputs[i]] = true;
        begin(&l);
        find(&l, is_read, outputs, n_output);
        for (int b = 0; b < l.n; b++) l.life[b].until = l.life[b].last;
        share(&l);
        *out = l;
    } else {
        keel_lives_free(&l);
    }
    keel_free(is_read);
    return room ? KEEL_OK : KEEL_ENOMEM;
}

void keel_lives_free(keel_lives *l)
{
    keel_free(l->life);
    keel_free(l->segment_of);
    keel_free(l->skip_forward);
    keel_free(l->skip_backward);
    *l = (keel_lives){ 0 };
}
