/* Gradients that owners make tile by tile, from the rows of all workers of this process.
 *
 * The rows are added one after another. If the number of shards is given, the gradient of each
 * shard is made apart, and they are added in the order of the tree of shards, as all other
 * gradients are; the tile stays in the cache meanwhile. */
#include "base/memory.h"
#include "base/tree.h"
#include "graph/bind.h"
#include "graph/gradients.h"
#include <string.h>

static int64_t largest_tile(const keel_program *p)
{
    int64_t most = 0;
    for (int v = 0; v < p->store->n_weight; v++) {
        const int64_t tile = keel_store_tile(p->store, v);
        if (p->tiled[v].node >= 0 && tile > most) most = tile;
    }
    return keel_round_up(most * (int64_t)keel_dtype_size(p->store->real), 64);
}

keel_status keel_tiles_place(keel_program *p)
{
    int64_t scratch;
    if (!p->lanes->shards) return KEEL_OK;
    p->summand_bytes = largest_tile(p);
    const int64_t stack = p->summand_bytes * keel_tree_nodes(p->lanes->shards);
    if (!keel_mul_i64(keel_round_up(p->tile_scratch, 64), p->lanes->shards, &scratch) ||
        scratch > INT64_MAX / 4)
        return keel_fail(KEEL_ESHAPE, "a step of %lld rows in %d shards is too large",
                         (long long)p->options.max_rows, p->lanes->shards);
    p->tile_bytes = stack + scratch;
    return KEEL_OK;
}

/* Where the rows of a node lie. */
static keel_span span_of(const keel_program *p, const keel_graph_node *n, const keel_piece *piece)
{
    return (keel_span){ .in = keel_program_rows(p, &p->value[n->in[0]], piece),
                        .out_grad = keel_program_rows(p, &p->grad[n->out[0]], piece),
                        .rows = piece->rows };
}

/* The elements that a call asks for, over the rows of some spans. */
static keel_tile_call call_of(const keel_program *p, int worker, const keel_tile_request *r,
                              const keel_span *span, int n_span)
{
    const struct keel_tiled *tiled = &p->tiled[r->variable];
    return (keel_tile_call){ .node = &p->graph->node[tiled->node].node,
                             .span = span,
                             .n_span = n_span,
                             .weight = tiled->weight,
                             .first = r->first,
                             .count = r->count,
                             .grad = r->grad,
                             .scratch = p->workspace[worker].scratch,
                             .plan = tiled->plan };
}

/* All rows that this process has, in one call. */
static void make_whole(const keel_program *p, const keel_bound *b, int worker,
                       const keel_tile_request *r)
{
    const keel_variable v = r->variable;
    const keel_store *store = p->store;
    const int64_t element = (int64_t)keel_dtype_size(store->real);
    const keel_graph_node *n = &p->graph->node[p->tiled[v].node];
    keel_span span[KEEL_LANES_MAX];
    int n_span = 0;
    for (int i = 0; i < b->n_busy; i++) {
        const keel_piece *piece = &b->piece[i];
        if (i > 0 && piece->worker == b->piece[i - 1].worker)
            span[n_span - 1].rows += piece->rows;
        else
            span[n_span++] = span_of(p, n, piece);
    }
    keel_tile_call c = call_of(p, worker, r, span, n_span);
    c.checked = r->checked;
    c.bad = r->bad;
    c.move = r->move;
    c.part = r->part;
    c.scratch_ready = p->workspace[worker].last_tiled == v;
    c.prefetch[c.n_prefetch++] = (const char *)keel_store_data(store, v) + r->first * element;
    for (int k = 0; !r->checked && k < p->n_moment; k++)
        c.prefetch[c.n_prefetch++] = p->moment[v * p->n_moment + k] + r->first * element;
    p->workspace[worker].last_tiled = v;
    p->tiled[v].run(&c);
}

/* ---- shard by shard -------------------------------------------------------------------------- */

/* A gradient of some shards; outside [skip, skip + count) it is 0, and not written. */
typedef struct summand {
    char *at;
    keel_tile_part part;
} summand;

/* The gradient of one shard. A kernel may give it in parts, neighbouring rows that are not 0, each
 * at the front of what it was asked for. */
static void make_shard(const keel_program *p, keel_tile_run run, keel_tile_call *c, summand *s)
{
    const int64_t first = c->first, count = c->count;
    const int64_t element = (int64_t)keel_dtype_size(p->store->real);
    s->part = (keel_tile_part){ 0 };
    for (int64_t at = 0, end = 0; at < count; at = end) {
        keel_tile_part part = { .count = count - at };
        c->first = first + at;
        c->count = count - at;
        c->grad = s->at + at * element;
        c->part = &part;
        run(c);
        c->scratch_ready = true;
        if (part.count == 0) break;
        const int64_t begin = at + part.skip;
        if (part.skip > 0)
            memmove(s->at + begin * element, c->grad, (size_t)(part.count * element));
        if (s->part.count == 0)
            s->part.skip = begin;
        else
            memset(s->at + end * element, 0, (size_t)((begin - end) * element));
        end = begin + part.count;
        s->part.count = end - s->part.skip;
    }
}

static void widen_to(summand *s, int64_t skip, int64_t end, int64_t element)
{
    const int64_t was = s->part.skip, was_end = was + s->part.count;
    if (s->part.count == 0)
        memset(s->at + skip * element, 0, (size_t)((end - skip) * element));
    else {
        if (skip < was) memset(s->at + skip * element, 0, (size_t)((was - skip) * element));
        if (end > was_end)
            memset(s->at + was_end * element, 0, (size_t)((end - was_end) * element));
    }
    s->part = (keel_tile_part){ .skip = skip, .count = end - skip };
}

static void add(keel_dtype real, summand *to, summand *from)
{
    const int64_t element = (int64_t)keel_dtype_size(real);
    if (to->part.count == 0 && from->part.count == 0) return;
    const keel_tile_part *a = to->part.count ? &to->part : &from->part;
    const keel_tile_part *b = from->part.count ? &from->part : &to->part;
    const int64_t skip = a->skip < b->skip ? a->skip : b->skip;
    const int64_t end =
        a->skip + a->count > b->skip + b->count ? a->skip + a->count : b->skip + b->count;
    widen_to(to, skip, end, element);
    widen_to(from, skip, end, element);
    keel_gradients_add(real, &(keel_addition){ .to = to->at + skip * element,
                                               .from = from->at + skip * element,
                                               .count = end - skip });
}

/* Makes the gradients of all shards of this process, and adds those that are in one of its nodes.
 * Returns the number of nodes; the first is in r->grad, the others in the worker's room. Behind
 * that room each shard has scratch of its own, which kernels use again for the next tile. */
static int make_shards(const keel_program *p, const keel_bound *b, int worker,
                       const keel_tile_request *r, summand *stack)
{
    const keel_variable v = r->variable;
    const keel_graph_node *n = &p->graph->node[p->tiled[v].node];
    const int64_t bytes = p->summand_bytes;
    keel_workspace *workspace = &p->workspace[worker];
    char *scratch = workspace->tiles + bytes * keel_tree_nodes(p->lanes->shards);
    int depth = 0;
    for (int i = 0; i < b->n_shard; i++) {
        const keel_shard *shard = &b->shard[i];
        const keel_piece piece = { .worker = shard->worker,
                                   .row = shard->row,
                                   .rows = shard->rows,
                                   .local_row = shard->local_row };
        const keel_span span = span_of(p, n, &piece);
        summand *s = &stack[depth];
        s->at = depth == 0 ? r->grad : workspace->tiles + (depth - 1) * bytes;
        keel_tile_call c = call_of(p, worker, r, &span, 1);
        c.scratch = scratch + i * keel_round_up(p->tile_scratch, 64);
        c.scratch_ready = workspace->last_tiled == v;
        make_shard(p, p->tiled[v].run, &c, s);
        depth++;
        for (int k = b->leaf[i].closes; k > 0; k--, depth--)
            add(p->store->real, &stack[depth - 2], &stack[depth - 1]);
    }
    workspace->last_tiled = v;
    return depth;
}

/* ---- asked for ------------------------------------------------------------------------------- */

void keel_program_tile(const keel_program *p, const keel_bound *b, int worker,
                       const keel_tile_request *r)
{
    summand stack[KEEL_TREE_NODES_MAX];
    if (!p->lanes->shards) {
        make_whole(p, b, worker, r);
        return;
    }
    const int64_t element = (int64_t)keel_dtype_size(p->store->real);
    make_shards(p, b, worker, r, stack);
    if (r->part) {
        *r->part = stack[0].part; /* the caller finds it at the front */
        if (r->part->skip > 0)
            memmove(stack[0].at, stack[0].at + r->part->skip * element,
                    (size_t)(r->part->count * element));
    } else
        widen_to(&stack[0], 0, r->count, element);
}

void keel_program_tile_nodes(const keel_program *p, const keel_bound *b, int worker,
                             keel_variable v, int64_t first, int64_t count, char *const *out)
{
    const int64_t element = (int64_t)keel_dtype_size(p->store->real);
    const keel_tile_request r = { .variable = v, .first = first, .count = count, .grad = out[0] };
    summand stack[KEEL_TREE_NODES_MAX];
    if (!p->lanes->shards) {
        make_whole(p, b, worker, &r);
        return;
    }
    const int n = make_shards(p, b, worker, &r, stack);
    for (int k = 0; k < n; k++) {
        widen_to(&stack[k], 0, count, element);
        if (k > 0) memcpy(out[k], stack[k].at, (size_t)(count * element));
    }
}
