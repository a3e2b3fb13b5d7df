/* Weight gradients: who computes which part of them, and in which order the parts are added.
 *
 * The rows of a step are divided into shards. A worker computes the gradient of a node's weights
 * once for each of its shards, and folds it at once into the gradients of the shards before, as
 * records are folded: a stack holds the largest nodes of the tree so far. The owner of a tile then
 * adds what all workers have left, in the order of the same tree (train/reduce.c).
 *
 * If the number of shards of a step is given, their tree has one leaf for each shard, so the sum
 * consists of the same additions for any lanes and workers. Otherwise a worker has one shard, or
 * two if the middle of the step lies in its rows (which gives one worker and two workers the same
 * tree). It adds its shards from left to right, and the workers' sums are added in the same way.
 *
 * A weight that several nodes use is not folded. Each use adds to the gradient of each shard,
 * because the sum over uses must be complete before it is added to that of another shard. A
 * gradient that is read from a merged record belongs to no shard; it is added to that of the first.
 */
#include "graph/gradients.h"
#include "base/clones.h"
#include "base/memory.h"
#include "base/tree.h"
#include <string.h>

/* ---- the shards of a step ------------------------------------------------------------------- */

/* With at most two workers, the two halves of a step are summed separately, whoever has them. A
 * device would need twice as many launches for that, of half the size; of several processes one
 * may have none. */
static bool has_halves(const keel_lanes *l)
{
    const bool there = l->n_process <= 1 && keel_lanes_device(l);
    return l->shards == 0 && l->all_workers <= 2 && !there;
}

int64_t keel_shards_common(const keel_lanes *l, int64_t rows)
{
    const int64_t shards = has_halves(l) ? 2 : l->shards;
    return rows < shards ? rows : shards;
}

static keel_shard *add_shard(keel_bound *b, const keel_piece *run, int64_t row, int64_t end)
{
    keel_shard *s = &b->shard[b->n_shard++];
    *s = (keel_shard){ .worker = run->worker,
                       .row = row,
                       .rows = end - row,
                       .local_row = run->local_row + row - run->row };
    return s;
}

/* Finds the shards of a run, and where their gradients lie in the stack that begins at `base`.
 * Returns how many gradients are left. */
static int fold_run(keel_bound *b, const keel_lanes *l, const keel_piece *run, int base)
{
    const int64_t all = keel_lanes_shards(l, b->rows), end = run->row + run->rows;
    int64_t begin = 0, next, own_begin, own_end;
    keel_lanes_range(l, all, l->process, &own_begin, &own_end);
    while (keel_cut_first(b->rows, all, begin) < run->row) begin++;
    for (next = begin; keel_cut_first(b->rows, all, next) < end; next++) continue;
    int depth = base;
    for (int64_t i = begin; i < next; i++) {
        keel_shard *s =
            add_shard(b, run, keel_cut_first(b->rows, all, i), keel_cut_first(b->rows, all, i + 1));
        s->depth = depth;
        s->closes = keel_tree_closes(all, i, i + 1, begin, next, true);
        depth += 1 - s->closes;
        b->leaf[b->n_leaf++] =
            (keel_part){ .worker = run->worker,
                         .closes = keel_tree_closes(all, i, i + 1, own_begin, own_end, true) };
    }
    for (int64_t i = begin, slot = base; i < next; slot++) {
        const int64_t after = keel_tree_next(all, i, next);
        b->part[b->n_part++] =
            (keel_part){ .worker = run->worker,
                         .slot = (int)slot,
                         .closes = keel_tree_closes(all, i, after, own_begin, own_end, true) };
        i = after;
    }
    return depth - base;
}

static void fold_in_tree(keel_bound *b, const keel_lanes *l)
{
    int base[KEEL_LANES_MAX] = { 0 }, own[KEEL_LANES_MAX] = { 0 };
    for (int i = 0; i < b->n_run; i++)
        base[b->run[i].worker] += fold_run(b, l, &b->run[i], base[b->run[i].worker]);
    for (int i = 0; i < b->n_shard; i++)
        b->shard[i].leaf = b->leaf[i].slot = own[b->shard[i].worker]++;
}

static void fold_by_worker(keel_bound *b, const keel_lanes *l)
{
    int own[KEEL_LANES_MAX] = { 0 };
    const int64_t half = keel_cut_rows(b->rows, 2, 0);
    const int most = has_halves(l) ? 2 : 1;
    for (int i = 0; i < b->n_run; i++) {
        const keel_piece *run = &b->run[i];
        const int64_t end = run->row + run->rows;
        for (int64_t row = run->row, next; row < end; row = next) {
            next = has_halves(l) && row < half && half < end ? half : end;
            keel_shard *s = add_shard(b, run, row, next);
            const int before = own[run->worker]++;
            s->depth = s->closes = before > 0;
            s->leaf = before < most ? before : most - 1;
            s->leaf_adds = before >= most;
            if (before == 0)
                b->part[b->n_part++] = (keel_part){ .worker = run->worker, .closes = i > 0 };
            if (s->leaf_adds) continue;
            const bool closes = b->n_leaf > 0;
            b->leaf[b->n_leaf++] =
                (keel_part){ .worker = run->worker, .slot = s->leaf, .closes = closes };
        }
    }
}

/* The most shards that the runs of a step can make. */
static size_t most_shards(const keel_bound *b, const keel_lanes *l)
{
    return (size_t)(l->shards ? l->shards : b->n_run + 1);
}

keel_status keel_gradients_cut(keel_bound *b, const keel_lanes *l)
{
    const size_t most = most_shards(b, l);
    b->shard = keel_calloc(most, sizeof *b->shard);
    b->part = keel_calloc(most, sizeof *b->part);
    b->leaf = keel_calloc(most, sizeof *b->leaf);
    if (!b->shard || !b->part || !b->leaf) return KEEL_ENOMEM;
    if (l->shards)
        fold_in_tree(b, l);
    else
        fold_by_worker(b, l);
    b->one_each = b->n_part == l->n_worker && b->n_leaf == l->n_worker;
    return KEEL_OK;
}

void keel_gradients_uncut(keel_bound *b)
{
    keel_free(b->shard);
    keel_free(b->part);
    keel_free(b->leaf);
}

/* ---- where they lie -------------------------------------------------------------------------- */

static int64_t aligned(const keel_program *p, int64_t elements)
{
    return keel_round_up(elements, (int64_t)(64 / keel_dtype_size(p->options.real)));
}

/* Nothing is folded if each worker has at most one shard. With unequal shares the middle of a step
 * may lie within the rows of a worker. */
static bool folds(const keel_lanes *l)
{
    return l->n_worker == 1 || (!l->shared && l->n_part > l->n_worker) || keel_lanes_unequal(l);
}

/* Over all steps: the largest stack, the most gradients left of one, and the most shards of a
 * worker. */
static keel_status measure_stacks(const keel_program *p, int *depth, int *left, int *leaves)
{
    const keel_lanes *l = p->lanes;
    *left = 1;
    *depth = 1 + folds(l);
    *leaves = has_halves(l) && (folds(l) || !p->schedule.at_once) ? 2 : 1;
    for (int64_t n = 1; n <= keel_lanes_shards(l, p->options.max_rows); n++) {
        keel_piece piece[KEEL_LANES_MAX], run[KEEL_LANES_MAX];
        keel_bound b = { .rows = n, .run = run };
        keel_cut(l, n, piece);
        b.n_run = keel_pieces_join(piece, l->n_part, run);
        const keel_status s = keel_gradients_cut(&b, l);
        for (int i = 0; s >= 0 && i < b.n_shard; i++) {
            if (b.shard[i].depth >= *depth) *depth = b.shard[i].depth + 1;
            if (b.shard[i].leaf >= *leaves) *leaves = b.shard[i].leaf + 1;
        }
        for (int i = 0; s >= 0 && i < b.n_part; i++)
            if (b.part[i].slot >= *left) *left = b.part[i].slot + 1;
        keel_gradients_uncut(&b);
        KEEL_TRY(s);
    }
    return KEEL_OK;
}

static void find_kinds(keel_program *p)
{
    for (int i = 0; i < p->schedule.n_instruction; i++) {
        const keel_instruction *in = &p->schedule.instruction[i];
        const keel_graph_node *n = &p->graph->node[in->node];
        if (in->kind != KEEL_RUN_WEIGHTS) continue;
        for (int k = 0; k < n->node.n_weight; k++) {
            keel_gradient *g = &p->gradient[n->weight[k]];
            const bool merged = keel_weights_from_merged(&n->node);
            const keel_gradient_kind own = merged                ? KEEL_GRADIENT_MERGED
                                           : p->schedule.at_once ? KEEL_GRADIENT_SHARED
                                                                 : KEEL_GRADIENT_FOLDED;
            g->kind = g->kind == KEEL_GRADIENT_NONE || (g->kind == own && merged)
                          ? own
                          : KEEL_GRADIENT_SHARED;
        }
    }
}

/* If a node shares some of its weights, all of them are kept as shared ones are, since one call
 * writes them. Returns whether anything changed. */
static bool spread_sharing(keel_program *p, const keel_graph_node *n)
{
    bool shared = false, changed = false;
    for (int k = 0; k < n->node.n_weight; k++)
        shared = shared || p->gradient[n->weight[k]].kind == KEEL_GRADIENT_SHARED;
    for (int k = 0; shared && !keel_weights_from_merged(&n->node) && k < n->node.n_weight; k++) {
        keel_gradient *g = &p->gradient[n->weight[k]];
        changed = changed || g->kind == KEEL_GRADIENT_FOLDED;
        if (g->kind == KEEL_GRADIENT_FOLDED) g->kind = KEEL_GRADIENT_SHARED;
    }
    return changed;
}

static void spread_kinds(keel_program *p)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < p->schedule.n_instruction; i++)
            if (p->schedule.instruction[i].kind == KEEL_RUN_WEIGHTS &&
                spread_sharing(p, &p->graph->node[p->schedule.instruction[i].node]))
                changed = true;
    }
}

/* Elements of the node's weights whose gradients are folded. */
static int64_t folded_of(const keel_program *p, int node)
{
    const keel_graph_node *n = &p->graph->node[node];
    int64_t elements = 0;
    for (int k = 0; k < n->node.n_weight; k++) {
        const keel_gradient *g = &p->gradient[n->weight[k]];
        if (g->kind == KEEL_GRADIENT_FOLDED) elements += aligned(p, g->count);
    }
    return elements;
}

keel_status keel_gradients_place(keel_program *p)
{
    int depth, leaves;
    int64_t most = 0;
    const size_t element = keel_dtype_size(p->options.real);
    p->gradient = keel_calloc((size_t)p->store->n_weight, sizeof *p->gradient);
    if (!p->gradient) return KEEL_ENOMEM;
    KEEL_TRY(measure_stacks(p, &depth, &p->fold_slots, &leaves));
    find_kinds(p);
    spread_kinds(p);
    p->gradient_elements = p->n_grad;
    for (int v = 0; v < p->store->n_weight; v++) {
        keel_gradient *g = &p->gradient[v];
        const keel_store_weight *w = &p->store->weight[v];
        const int slots = g->kind == KEEL_GRADIENT_FOLDED   ? p->fold_slots
                          : g->kind == KEEL_GRADIENT_SHARED ? leaves
                                                            : 1;
        int64_t extra;
        g->count = p->trains[v] ? w->count : 0;
        g->first = w->offset;
        g->others = p->gradient_elements;
        if (!keel_mul_i64(aligned(p, g->count), slots - 1, &extra) ||
            extra > INT64_MAX / 16 - p->gradient_elements)
            return keel_fail(KEEL_ESHAPE, "weight '%s': %lld elements in %d shards are too many",
                             w->info.name, (long long)w->count, slots);
        p->gradient_elements += extra;
    }
    for (int i = 0; i < p->graph->n_node; i++) {
        const int64_t elements = folded_of(p, i);
        if (elements > most) most = elements;
    }
    p->fold_stride = most;
    if (!keel_mul_i64(most * (int64_t)element, depth - p->fold_slots, &p->fold_bytes))
        return keel_fail(KEEL_ESHAPE, "weights of %lld elements are too many", (long long)most);
    return KEEL_OK;
}

/* In bytes, into a worker's gradients. */
static int64_t slot_of(const keel_program *p, keel_variable v, int slot)
{
    const keel_gradient *g = &p->gradient[v];
    const int64_t at = slot == 0 ? g->first : g->others + (slot - 1) * aligned(p, g->count);
    return at * (int64_t)keel_dtype_size(p->options.real);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The address of the gradient of weight k, which is folded, at a place of the stack. behind:
 * elements of the node's weights before it. */
static char *stack_at(const keel_program *p, const keel_workspace *s, keel_variable v, int depth,
                      int64_t behind)
{
    if (depth < p->fold_slots) return s->grad + slot_of(p, v, depth);
    return s->fold + ((depth - p->fold_slots) * p->fold_stride + behind) *
                         (int64_t)keel_dtype_size(p->options.real);
}

keel_status keel_gradients_bind(const keel_program *p, int worker, const keel_shard *shard,
                                keel_bound_call *c)
{
    const keel_graph_node *n = &p->graph->node[c->node];
    const keel_workspace *s = &p->workspace[worker];
    const uint32_t clears = shard->leaf_adds ? 0 : p->schedule.weight_clears[c->node];
    void **weight_grad = c->call.weight_grad;
    int64_t behind = 0;
    c->n_add = c->n_clear = 0;
    c->add = NULL;
    if (p->options.dry) return KEEL_OK;
    const size_t most = (size_t)(shard->closes + (clears != 0)) * (size_t)n->node.n_weight;
    if (most > 0 && !(c->add = keel_calloc(most, sizeof *c->add))) return KEEL_ENOMEM;
    for (int k = 0; k < n->node.n_weight; k++) {
        const keel_variable v = n->weight[k];
        const keel_gradient *g = &p->gradient[v];
        if (g->count == 0) continue;
        if (g->kind == KEEL_GRADIENT_FOLDED) {
            weight_grad[k] = stack_at(p, s, v, shard->depth, behind);
            for (int i = 0; i < shard->closes; i++)
                c->add[c->n_add++] = (keel_addition){
                    .to = stack_at(p, s, v, shard->depth - i - 1, behind),
                    .from = stack_at(p, s, v, shard->depth - i, behind),
                    .count = g->count,
                };
            behind += aligned(p, g->count);
        } else
            weight_grad[k] =
                s->grad + slot_of(p, v, g->kind == KEEL_GRADIENT_SHARED ? shard->leaf : 0);
        if (!(clears >> k & 1)) continue; /* all of its weights are shared, so nothing is folded */
        c->add[c->n_add++] = (keel_addition){ .to = weight_grad[k], .count = g->count };
        c->n_clear = c->n_add;
    }
    return KEEL_OK;
}

bool keel_gradients_adds(const keel_program *p, int node, const keel_shard *shard)
{
    const keel_graph_node *n = &p->graph->node[node];
    bool shared = false;
    for (int k = 0; k < n->node.n_weight; k++)
        shared = shared || p->gradient[n->weight[k]].kind == KEEL_GRADIENT_SHARED;
    return p->schedule.weight_adds[node] || (shared && shard->leaf_adds);
}

KEEL_CLONES static void add_f32(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

KEEL_CLONES static void add_f64(double *restrict to, const double *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

void keel_gradients_add(keel_dtype real, const keel_addition *a)
{
    if (real == KEEL_FLOAT64)
        add_f64(a->to, a->from, a->count);
    else
        add_f32(a->to, a->from, a->count);
}

int keel_gradient_parts(const keel_program *p, const keel_bound *b, keel_variable v, int64_t first,
                        keel_gradient_part *out)
{
    const int64_t at = first * (int64_t)keel_dtype_size(p->options.real);
    const keel_gradient *g = &p->gradient[v];
    const bool shared = g->kind == KEEL_GRADIENT_SHARED;
    const bool many = !p->sums_there; /* else the first worker has the sum */
    const int n = !many ? 1 : shared ? b->n_leaf : g->kind == KEEL_GRADIENT_FOLDED ? b->n_part : 1;
    for (int i = 0; i < n; i++) {
        const keel_part *part = shared ? &b->leaf[i] : &b->part[i];
        out[i] = (keel_gradient_part){ .data = p->workspace[part->worker].host.grad +
                                               slot_of(p, v, part->slot) + at,
                                       .closes = n > 1 ? part->closes : 0 };
    }
    return n;
}

void keel_gradients_segments(const keel_program *p, int *segment)
{
    const keel_schedule *s = &p->schedule;
    for (int v = 0; v < p->store->n_weight; v++)
        segment[v] = p->tiled[v].node >= 0 ? s->n_segment - 1 : 0;
    for (int g = 0; g < s->n_segment; g++)
        for (int i = s->segment[g].begin; i < s->segment[g].end; i++) {
            const keel_instruction *in = &s->instruction[i];
            const keel_graph_node *n = &p->graph->node[in->node];
            const bool tiled = s->tiled[in->node];
            if (in->kind != (tiled ? KEEL_RUN_BACKWARD : KEEL_RUN_WEIGHTS)) continue;
            for (int k = 0; k < n->node.n_weight; k++)
                if (tiled || segment[n->weight[k]] < g) segment[n->weight[k]] = g;
        }
}
