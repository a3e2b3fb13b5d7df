/* See buckets.h. */
#include "graph/buckets.h"
#include "base/memory.h"
#include "base/tree.h"
#include "graph/across.h"
#include <stdatomic.h>
#include <string.h>

enum { SCATTER = 1, SHARE = SCATTER + KEEL_BUCKETS_MAX }; /* numbers of exchanges */
_Static_assert((int)SHARE + KEEL_BUCKETS_MAX < (int)KEEL_EXCHANGES_MAX - 2,
               "the last numbers are others'");

static int64_t element_of(const keel_program *p)
{
    return (int64_t)keel_dtype_size(p->options.real);
}

static int64_t part_of(const keel_program *p, const keel_bucket *k)
{
    const int me = p->lanes->process;
    return k->first[me + 1] - k->first[me];
}

/* ---- made and ended -------------------------------------------------------------------------- */

static keel_status measure_nodes(keel_buckets *x, const keel_lanes *l)
{
    x->own_most = 1;
    x->all_most = l->n_process;
    for (int64_t n = 1; n <= l->shards; n++) {
        keel_process_nodes nodes;
        const keel_status s = keel_process_nodes_make(&nodes, l, n, false);
        if (s >= 0) {
            const int own = keel_nodes_of(&nodes, l->process);
            if (own > x->own_most) x->own_most = own;
            if (nodes.n > x->all_most) x->all_most = nodes.n;
        }
        keel_process_nodes_free(&nodes);
        KEEL_TRY(s);
    }
    return KEEL_OK;
}

/* The segment after which a worker has its part of each weight's gradient, segment[n_weight]. */
static void find_segments(const keel_program *p, int *segment)
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

/* Nearly equal parts of whole tiles. */
static void divide(const keel_buckets *x, keel_bucket *k, int n_process)
{
    const keel_tile *last = &x->tile[k->end - 1];
    const int64_t begin = x->tile[k->begin].offset, end = last->offset + last->count;
    int q = 0;
    for (int i = k->begin; i < k->end; i++)
        for (; q < n_process &&
               x->tile[i].offset + x->tile[i].count / 2 - begin >= (end - begin) / n_process * q;
             q++)
            k->first[q] = q ? x->tile[i].offset : begin;
    while (q <= n_process) k->first[q++] = end;
}

static keel_status make_bucket(keel_buckets *x, keel_bucket *k, const keel_program *p,
                               const int *segment)
{
    const size_t n = (size_t)p->lanes->n_process;
    k->first = keel_calloc(n + 1, sizeof *k->first);
    k->send = keel_calloc(n, sizeof *k->send);
    k->receive = keel_calloc(n, sizeof *k->receive);
    k->send_bytes = keel_calloc(n, sizeof *k->send_bytes);
    k->receive_bytes = keel_calloc(n, sizeof *k->receive_bytes);
    if (!k->first || !k->send || !k->receive || !k->send_bytes || !k->receive_bytes)
        return KEEL_ENOMEM;
    for (int i = k->begin; i < k->end; i++)
        if (segment[x->tile[i].variable] > k->segment) k->segment = segment[x->tile[i].variable];
    divide(x, k, p->lanes->n_process);
    x->own_part += part_of(p, k);
    if (p->options.dry) return KEEL_OK;
    k->received =
        keel_aligned_calloc((size_t)x->all_most * (size_t)part_of(p, k) + 1, (size_t)element_of(p));
    return k->received ? KEEL_OK : KEEL_ENOMEM;
}

/* Buckets of whole tiles, each at least as large as the connection likes. */
static keel_status make_buckets(keel_buckets *x, const keel_program *p)
{
    const keel_comm *c = p->options.comm; /* NULL: planned, for a connection that is not known */
    int64_t least = (c ? c->bucket_bytes : KEEL_BUCKET_LEAST) / element_of(p), n = 0;
    int *segment = keel_calloc((size_t)p->store->n_weight, sizeof *segment);
    keel_status s = segment ? KEEL_OK : KEEL_ENOMEM;
    if (least < p->n_grad / KEEL_BUCKETS_MAX + 1) least = p->n_grad / KEEL_BUCKETS_MAX + 1;
    if (s >= 0) find_segments(p, segment);
    for (int i = 0, begin = 0; i < x->n_tile && s >= 0; i++) {
        n += x->tile[i].count;
        if (n < least && i + 1 < x->n_tile) continue;
        keel_bucket *k = &x->bucket[x->n++];
        k->begin = begin;
        k->end = begin = i + 1;
        s = make_bucket(x, k, p, segment);
        n = 0;
    }
    keel_free(segment);
    return s;
}

keel_status keel_buckets_create(keel_program *p)
{
    keel_buckets *x = p->across->buckets = keel_calloc(1, sizeof *x);
    if (!x) return KEEL_ENOMEM;
    x->bucket = keel_calloc(KEEL_BUCKETS_MAX, sizeof *x->bucket);
    x->cursor = keel_aligned_calloc((size_t)p->lanes->n_worker, sizeof *x->cursor);
    if (!x->bucket || !x->cursor) return KEEL_ENOMEM;
    KEEL_TRY(measure_nodes(x, p->lanes));
    KEEL_TRY(keel_store_tiles(p->store, p->trains, &x->tile, &x->n_tile));
    KEEL_TRY(make_buckets(x, p));
    if (p->options.dry || x->own_most == 1) return KEEL_OK;
    x->more = keel_aligned_calloc((size_t)(x->own_most - 1) * (size_t)p->n_grad + 1,
                                  (size_t)element_of(p));
    return x->more ? KEEL_OK : KEEL_ENOMEM;
}

void keel_buckets_destroy(keel_buckets *x)
{
    if (!x) return;
    for (int i = 0; x->bucket && i < KEEL_BUCKETS_MAX; i++) {
        keel_bucket *k = &x->bucket[i];
        keel_free(k->first);
        keel_free(k->received);
        keel_free(k->send);
        keel_free(k->receive);
        keel_free(k->send_bytes);
        keel_free(k->receive_bytes);
    }
    keel_free(x->bucket);
    keel_free(x->cursor);
    keel_free(x->tile);
    keel_free(x->more);
    keel_free(x);
}

/* ---- folded ---------------------------------------------------------------------------------- */

/* A node of this process, as a flat range. */
static char *own_node(const keel_program *p, int slot)
{
    return slot == 0 ? p->workspace[0].grad
                     : p->across->buckets->more + (slot - 1) * p->n_grad * element_of(p);
}

/* Adds parts in the order of the tree. Returns how many sums are left; stack[i] is one of them. */
static int add_parts(const keel_program *p, const keel_gradient_part *part, int n, int64_t count,
                     char *stack[])
{
    int depth = 0;
    for (int i = 0; i < n; i++) {
        stack[depth++] = part[i].data;
        for (int c = part[i].closes; c > 0; c--, depth--)
            keel_gradients_add(p->options.real, &(keel_addition){ .to = stack[depth - 2],
                                                                  .from = stack[depth - 1],
                                                                  .count = count });
    }
    return depth;
}

static void keep(const keel_program *p, const keel_tile *t, char *const stack[], int n)
{
    const int64_t at = t->offset * element_of(p);
    for (int i = 0; i < n; i++)
        if (stack[i] != own_node(p, i) + at)
            memcpy(own_node(p, i) + at, stack[i], (size_t)(t->count * element_of(p)));
}

/* Adds the parts that workers have left of a tile. */
static void fold_parts(const keel_program *p, const keel_bound *b, const keel_tile *t)
{
    keel_gradient_part part[KEEL_LANES_MAX];
    char *stack[KEEL_LANES_MAX];
    const int n = keel_gradient_parts(p, b, t->variable,
                                      t->offset - p->store->weight[t->variable].offset, part);
    keep(p, t, stack, add_parts(p, part, n, t->count, stack));
}

static void make_nodes(const keel_program *p, const keel_bound *b, int worker, const keel_tile *t)
{
    const int n = keel_nodes_of(&b->gradient_nodes, p->lanes->process);
    char *out[KEEL_TREE_NODES_MAX];
    for (int k = 0; k < n; k++) out[k] = own_node(p, k) + t->offset * element_of(p);
    keel_program_tile_nodes(p, b, worker, t->variable,
                            t->offset - p->store->weight[t->variable].offset, t->count, out);
}

/* A worker's part of a bucket. */
static void fold(const keel_program *p, const keel_bound *b, int worker, const keel_bucket *k)
{
    const keel_buckets *x = p->across->buckets;
    const int64_t n = k->end - k->begin, n_worker = p->lanes->n_worker;
    const int64_t begin = p->timing ? keel_clock_ns() : 0;
    if (b->n_busy == 0) return;
    p->workspace[worker].last_tiled = -1; /* calls have used the scratch since */
    for (int64_t i = n * worker / n_worker; i < n * (worker + 1) / n_worker; i++) {
        const keel_tile *t = &x->tile[k->begin + i];
        const keel_gradient_kind kind = p->gradient[t->variable].kind;
        if (!p->schedule.reached[t->variable]) continue;
        if (p->tiled[t->variable].node >= 0)
            make_nodes(p, b, worker, t);
        else if (kind == KEEL_GRADIENT_MERGED ? b->piece[0].row == 0 : kind != KEEL_GRADIENT_NONE)
            fold_parts(p, b, t);
    }
    if (p->timing) keel_timing_phase(p->timing, worker, KEEL_PHASE_REDUCE, begin);
}

/* Folds what all workers have arrived at. */
static void fold_ready(const keel_program *p, const keel_bound *b, int worker)
{
    keel_buckets *x = p->across->buckets;
    keel_bucket_cursor *at = &x->cursor[worker];
    for (; at->folded < x->n; at->folded++) {
        keel_bucket *k = &x->bucket[at->folded];
        if (atomic_load_explicit(&k->arrived, memory_order_acquire) < p->lanes->n_worker) return;
        if (!atomic_load_explicit(&x->broken, memory_order_relaxed)) fold(p, b, worker, k);
        atomic_fetch_add_explicit(&k->folded, 1, memory_order_acq_rel);
    }
}

/* ---- exchanged ------------------------------------------------------------------------------- */

/* The most nodes that one process has: so many rounds bring all of them. */
static int most_nodes(const keel_process_nodes *x)
{
    int most = 0;
    for (int i = 0; i < x->n; i++)
        if (x->node[i].slot >= most) most = x->node[i].slot + 1;
    return most;
}

int keel_buckets_exchanges(const keel_program *p, const keel_bound *b)
{
    return p->across->buckets->n * (most_nodes(&b->gradient_nodes) + 1);
}

int64_t keel_buckets_bytes(const keel_program *p, const keel_bound *b)
{
    const keel_buckets *x = p->across->buckets;
    const int n = p->lanes->n_process;
    const int64_t nodes = keel_nodes_of(&b->gradient_nodes, p->lanes->process);
    int64_t sent = 0;
    for (const keel_bucket *k = x->bucket; k < x->bucket + x->n; k++) {
        const int64_t all = k->first[n] - k->first[0], part = part_of(p, k);
        sent += nodes * (all - part) + (n - 1) * part;
    }
    return sent * element_of(p);
}

int64_t keel_buckets_memory(const keel_program *p)
{
    const keel_buckets *x = p->across->buckets;
    return (x->all_most * x->own_part + (x->own_most - 1) * p->n_grad) * element_of(p);
}

static keel_status start(const keel_program *p, int number, const keel_bucket *k)
{
    return keel_comm_start(
        p->across->comm, number,
        &(keel_exchange){ k->send, k->send_bytes, k->receive, k->receive_bytes });
}

static keel_status start_round(const keel_program *p, const keel_bound *b, keel_bucket *k)
{
    const keel_process_nodes *nodes = &b->gradient_nodes;
    const int me = p->lanes->process;
    const int64_t element = element_of(p), part = part_of(p, k) * element;
    const bool sends = k->round < keel_nodes_of(nodes, me);
    for (int q = 0; q < p->lanes->n_process; q++) {
        const bool comes = q != me && k->round < keel_nodes_of(nodes, q);
        k->send[q] = sends ? own_node(p, k->round) + k->first[q] * element : NULL;
        k->send_bytes[q] =
            sends && q != me ? (size_t)((k->first[q + 1] - k->first[q]) * element) : 0;
        k->receive[q] = k->received + (nodes->before[q] + k->round) * part;
        k->receive_bytes[q] = comes ? (size_t)part : 0;
    }
    k->stage = KEEL_BUCKET_SCATTER;
    return start(p, SCATTER + (int)(k - p->across->buckets->bucket), k);
}

/* The nodes of all for a tile in the part of this process. */
static int parts_of(const keel_program *p, const keel_bound *b, const keel_bucket *k,
                    const keel_tile *t, keel_gradient_part *out)
{
    const keel_process_nodes *nodes = &b->gradient_nodes;
    const int me = p->lanes->process;
    const int64_t element = element_of(p), part = part_of(p, k);
    const int n = p->gradient[t->variable].kind == KEEL_GRADIENT_MERGED ? 1 : nodes->n;
    for (int i = 0; i < n; i++) {
        const keel_part *node = &nodes->node[i];
        out[i] = (keel_gradient_part){
            .data = node->worker == me
                        ? own_node(p, node->slot) + t->offset * element
                        : k->received + (i * part + t->offset - k->first[me]) * element,
            .closes = n > 1 ? node->closes : 0,
        };
    }
    return n;
}

static void add_all(const keel_program *p, const keel_bound *b, const keel_bucket *k)
{
    const keel_buckets *x = p->across->buckets;
    const int me = p->lanes->process;
    const int64_t begin = p->timing ? keel_clock_ns() : 0;
    keel_gradient_part part[KEEL_PROCESSES_MAX];
    char *stack[KEEL_PROCESSES_MAX];
    for (int i = k->begin; i < k->end; i++) {
        const keel_tile *t = &x->tile[i];
        if (t->offset < k->first[me] || t->offset >= k->first[me + 1] ||
            !p->schedule.reached[t->variable])
            continue;
        const int n = parts_of(p, b, k, t, part);
        keep(p, t, stack, add_parts(p, part, n, t->count, stack));
    }
    if (p->timing) keel_timing_phase(p->timing, 0, KEEL_PHASE_REDUCE, begin);
}

static keel_status start_sharing(const keel_program *p, keel_bucket *k)
{
    const int me = p->lanes->process;
    const int64_t element = element_of(p);
    char *all = p->workspace[0].grad;
    for (int q = 0; q < p->lanes->n_process; q++) {
        k->send[q] = all + k->first[me] * element;
        k->send_bytes[q] = q == me ? 0 : (size_t)(part_of(p, k) * element);
        k->receive[q] = all + k->first[q] * element;
        k->receive_bytes[q] = q == me ? 0 : (size_t)((k->first[q + 1] - k->first[q]) * element);
    }
    k->stage = KEEL_BUCKET_SHARE;
    return start(p, SHARE + (int)(k - p->across->buckets->bucket), k);
}

/* Moves one bucket on, if it can. moved: it did. */
static keel_status drive_one(const keel_program *p, const keel_bound *b, keel_bucket *k,
                             bool *moved)
{
    keel_buckets *x = p->across->buckets;
    const int i = (int)(k - x->bucket);
    if (k->stage == KEEL_BUCKET_FOLD) {
        *moved = atomic_load_explicit(&k->folded, memory_order_acquire) == p->lanes->n_worker;
        return *moved ? start_round(p, b, k) : KEEL_OK;
    }
    const bool scatters = k->stage == KEEL_BUCKET_SCATTER;
    KEEL_TRY(keel_comm_test(p->across->comm, (scatters ? SCATTER : SHARE) + i, moved));
    if (!*moved) return KEEL_OK;
    if (!scatters) {
        k->stage = KEEL_BUCKET_DONE;
        return KEEL_OK;
    }
    if (++k->round < most_nodes(&b->gradient_nodes)) return start_round(p, b, k);
    if (!atomic_load_explicit(&x->broken, memory_order_relaxed)) add_all(p, b, k);
    return start_sharing(p, k);
}

/* Moves all buckets on that are on their way, and begins others in their order. */
static bool drive(const keel_program *p, const keel_bound *b)
{
    keel_buckets *x = p->across->buckets;
    bool any = false;
    for (int i = x->done; i < x->n && x->failure.status >= 0; i++) {
        keel_bucket *k = &x->bucket[i];
        bool moved = false;
        if (k->stage == KEEL_BUCKET_DONE) continue;
        const keel_status s = drive_one(p, b, k, &moved);
        if (s < 0) keel_failure_take(&x->failure, s);
        any = any || moved;
        if (k->stage == KEEL_BUCKET_FOLD) break;
    }
    while (x->done < x->n && x->bucket[x->done].stage == KEEL_BUCKET_DONE) x->done++;
    return any;
}

void keel_buckets_pass(const keel_program *p, const keel_bound *b, int worker, int segment)
{
    keel_buckets *x = p->across->buckets;
    keel_bucket_cursor *at = &x->cursor[worker];
    if (p->failure[worker].status < 0)
        atomic_store_explicit(&x->broken, true, memory_order_relaxed);
    for (; at->arrived < x->n && x->bucket[at->arrived].segment <= segment; at->arrived++)
        atomic_fetch_add_explicit(&x->bucket[at->arrived].arrived, 1, memory_order_acq_rel);
    fold_ready(p, b, worker);
    if (worker == 0 && x->done < x->n) drive(p, b);
}

void keel_buckets_fold(const keel_program *p, const keel_bound *b, keel_team *team, int worker)
{
    keel_program_meet(p, team, worker);
    fold_ready(p, b, worker);
}

keel_status keel_buckets_finish(const keel_program *p, const keel_bound *b)
{
    keel_buckets *x = p->across->buckets;
    keel_patience patience = keel_patience_begin();
    const int64_t begin = p->timing ? keel_clock_ns() : 0;
    while (x->done < x->n && x->failure.status >= 0) {
        if (drive(p, b)) {
            patience = keel_patience_begin();
            continue;
        }
        const keel_bucket *k = &x->bucket[x->done];
        const keel_status s = keel_comm_patience(
            p->across->comm, (k->stage == KEEL_BUCKET_SHARE ? SHARE : SCATTER) + x->done,
            &patience);
        if (s < 0) keel_failure_take(&x->failure, s);
    }
    if (p->timing) keel_timing_phase(p->timing, 0, KEEL_PHASE_WAIT, begin);
    const keel_failure failure = x->failure;
    for (int i = 0; i < x->n; i++) {
        keel_bucket *k = &x->bucket[i];
        atomic_store_explicit(&k->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&k->folded, 0, memory_order_relaxed);
        k->stage = KEEL_BUCKET_FOLD;
        k->round = 0;
    }
    for (int w = 0; w < p->lanes->n_worker; w++) x->cursor[w].arrived = x->cursor[w].folded = 0;
    atomic_store_explicit(&x->broken, false, memory_order_relaxed);
    x->failure = (keel_failure){ 0 };
    x->done = 0;
    return failure.status < 0 ? keel_failure_raise(&failure) : KEEL_OK;
}
