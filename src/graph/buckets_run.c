/* Buckets of a step: see the stages in buckets.h. */
#include "base/tree.h"
#include "graph/across.h"
#include "graph/buckets.h"
#include <stdatomic.h>
#include <string.h>

enum { SCATTER = KEEL_EXCHANGE_BUCKETS, SHARE = SCATTER + KEEL_BUCKETS_MAX }; /* numbers */
_Static_assert((int)SHARE + KEEL_BUCKETS_MAX <= (int)KEEL_EXCHANGE_RECORDS,
               "the last numbers are others'");

/* ---- folded ---------------------------------------------------------------------------------- */

/* A node of this process, as a flat range. */
static char *own_node(const keel_program *p, int slot)
{
    return slot == 0 ? p->workspace[0].host.grad
                     : p->across->buckets->more + (slot - 1) * p->n_grad * keel_bucket_element(p);
}

/* What of it travels, and where the sums come to. */
static char *travelling(const keel_program *p, int slot)
{
    const keel_buckets *x = p->across->buckets;
    return x->narrow ? (char *)x->narrow : own_node(p, slot);
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
    const int64_t at = t->offset * keel_bucket_element(p);
    for (int i = 0; i < n; i++)
        if (stack[i] != own_node(p, i) + at)
            memcpy(own_node(p, i) + at, stack[i], (size_t)(t->count * keel_bucket_element(p)));
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
    for (int k = 0; k < n; k++) out[k] = own_node(p, k) + t->offset * keel_bucket_element(p);
    keel_program_tile_nodes(p, b, worker, t->variable,
                            t->offset - p->store->weight[t->variable].offset, t->count, out);
}

/* A worker's part of a bucket. */
static void fold(const keel_program *p, const keel_bound *b, int worker, const keel_bucket *k)
{
    const keel_buckets *x = p->across->buckets;
    const int64_t n = k->end - k->begin, n_worker = p->lanes->n_worker;
    int64_t at = p->timing ? keel_clock_ns() : 0;
    if (b->n_busy == 0) return;
    p->workspace[worker].last_tiled = -1; /* calls have used the scratch since */
    for (int64_t i = n * worker / n_worker; i < n * (worker + 1) / n_worker; i++) {
        const keel_tile *t = &x->tile[k->begin + i];
        const keel_gradient_kind kind = p->gradient[t->variable].kind;
        if (!p->schedule.reached[t->variable]) continue;
        const int node = p->tiled[t->variable].node;
        if (node >= 0)
            make_nodes(p, b, worker, t);
        else if (kind == KEEL_GRADIENT_MERGED ? b->piece[0].row == 0 : kind != KEEL_GRADIENT_NONE)
            fold_parts(p, b, t);
        else
            continue;
        if (p->timing && node >= 0)
            at = keel_timing_call(p->timing, worker, node, KEEL_WEIGHTS, at);
        if (x->narrow) keel_compressed_round(p, t); /* while it is in the cache */
        if (p->timing && (node < 0 || x->narrow))
            at = keel_timing_phase(p->timing, worker, KEEL_PHASE_REDUCE, at);
    }
}

/* ---- exchanged ------------------------------------------------------------------------------- */

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
    const int64_t element = p->across->buckets->element, part = keel_bucket_part(p, k) * element;
    const bool sends = k->round < keel_nodes_of(nodes, me);
    for (int q = 0; q < p->lanes->n_process; q++) {
        const bool comes = q != me && k->round < keel_nodes_of(nodes, q);
        k->send[q] = sends ? travelling(p, k->round) + k->first[q] * element : NULL;
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
    const int64_t element = keel_bucket_element(p), part = keel_bucket_part(p, k);
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
        if (x->narrow) {
            keel_compressed_add(p, b, k, t);
            continue;
        }
        const int n = parts_of(p, b, k, t, part);
        keep(p, t, stack, add_parts(p, part, n, t->count, stack));
    }
    if (p->timing) keel_timing_phase(p->timing, 0, KEEL_PHASE_REDUCE, begin);
}

/* Sums, or with options.shard_optimizer weights, which are not compressed. */
static keel_status start_sharing(const keel_program *p, keel_bucket *k)
{
    const int me = p->lanes->process;
    const bool weights = p->options.shard_optimizer;
    const int64_t element = weights ? keel_bucket_element(p) : p->across->buckets->element;
    char *all = weights ? own_node(p, 0) : travelling(p, 0);
    for (int q = 0; q < p->lanes->n_process; q++) {
        k->send[q] = all + k->first[me] * element;
        k->send_bytes[q] = q == me ? 0 : (size_t)(keel_bucket_part(p, k) * element);
        k->receive[q] = all + k->first[q] * element;
        k->receive_bytes[q] = q == me ? 0 : (size_t)((k->first[q + 1] - k->first[q]) * element);
    }
    k->stage = KEEL_BUCKET_SHARE;
    return start(p, SHARE + (int)(k - p->across->buckets->bucket), k);
}

/* The exchange of a bucket that is on its way. */
static int number_of(const keel_buckets *x, const keel_bucket *k)
{
    return (k->stage == KEEL_BUCKET_SHARE ? SHARE : SCATTER) + (int)(k - x->bucket);
}

/* Moves on one bucket that is on its way, if it can. moved: it did. */
static keel_status drive_one(const keel_program *p, const keel_bound *b, keel_bucket *k,
                             bool *moved)
{
    const keel_buckets *x = p->across->buckets;
    KEEL_TRY(keel_comm_test(p->across->comm, number_of(x, k), moved));
    if (!*moved) return KEEL_OK;
    if (k->stage == KEEL_BUCKET_SHARE) {
        k->stage = KEEL_BUCKET_DONE;
        return KEEL_OK;
    }
    if (++k->round < keel_bucket_rounds(&b->gradient_nodes)) return start_round(p, b, k);
    if (!atomic_load_explicit(&x->broken, memory_order_relaxed)) add_all(p, b, k);
    if (!p->options.shard_optimizer) return start_sharing(p, k);
    k->stage = KEEL_BUCKET_DONE;
    return KEEL_OK;
}

/* Begins, in their order, those that all workers have folded. */
static bool begin_folded(const keel_program *p, const keel_bound *b)
{
    keel_buckets *x = p->across->buckets;
    const int before = x->begun;
    for (; x->begun < x->n && x->failure.status >= 0; x->begun++) {
        keel_bucket *k = &x->bucket[x->begun];
        if (atomic_load_explicit(&k->folded, memory_order_acquire) < p->lanes->n_worker) break;
        const keel_status s = start_round(p, b, k);
        if (s < 0) keel_failure_take(&x->failure, s);
    }
    return x->begun > before;
}

/* Moves all buckets on that are on their way, and begins others. */
static bool drive(const keel_program *p, const keel_bound *b)
{
    keel_buckets *x = p->across->buckets;
    bool any = begin_folded(p, b);
    for (int i = x->done; i < x->begun && x->failure.status >= 0; i++) {
        bool moved = false;
        if (x->bucket[i].stage == KEEL_BUCKET_DONE) continue;
        const keel_status s = drive_one(p, b, &x->bucket[i], &moved);
        if (s < 0) keel_failure_take(&x->failure, s);
        any = any || moved;
    }
    while (x->done < x->begun && x->bucket[x->done].stage == KEEL_BUCKET_DONE) x->done++;
    return any;
}

/* ---- in a step ------------------------------------------------------------------------------- */

static bool drive_while_waiting(void *context)
{
    const keel_buckets *x = context;
    return drive(x->program, x->bound);
}

void keel_buckets_begin(const keel_program *p, const keel_bound *b)
{
    keel_buckets *x = p->across->buckets;
    x->program = p;
    x->bound = b;
    p->across->comm->meanwhile = drive_while_waiting;
    p->across->comm->meanwhile_context = x;
}

/* Folds what all workers have arrived at. What worker 0 sees folded leaves while it folds others.
 */
static void fold_ready(const keel_program *p, const keel_bound *b, int worker)
{
    keel_buckets *x = p->across->buckets;
    keel_bucket_cursor *at = &x->cursor[worker];
    for (; at->folded < x->n; at->folded++) {
        keel_bucket *k = &x->bucket[at->folded];
        if (atomic_load_explicit(&k->arrived, memory_order_acquire) < p->lanes->n_worker) return;
        if (!atomic_load_explicit(&x->broken, memory_order_relaxed)) fold(p, b, worker, k);
        atomic_fetch_add_explicit(&k->folded, 1, memory_order_acq_rel);
        if (worker != 0) continue;
        begin_folded(p, b);
        keel_buckets_look(p, b);
    }
}

void keel_buckets_arrive(const keel_program *p, int worker, int segment)
{
    keel_buckets *x = p->across->buckets;
    keel_bucket_cursor *at = &x->cursor[worker];
    if (p->failure[worker].status < 0)
        atomic_store_explicit(&x->broken, true, memory_order_relaxed);
    for (; at->arrived < x->n && x->bucket[at->arrived].segment <= segment; at->arrived++)
        atomic_fetch_add_explicit(&x->bucket[at->arrived].arrived, 1, memory_order_acq_rel);
}

void keel_buckets_pass(const keel_program *p, const keel_bound *b, int worker)
{
    keel_buckets *x = p->across->buckets;
    fold_ready(p, b, worker);
    if (worker != 0 || x->done == x->n) return;
    p->across->comm->passing = true;
    drive(p, b);
    p->across->comm->passing = false;
}

/* Of buckets the first is tested: whatever else is on its way moves with it. */
void keel_buckets_look(const keel_program *p, const keel_bound *b)
{
    enum { PAUSE_NS = 50000 };
    keel_across *a = p->across;
    keel_buckets *x = a->buckets;
    if (x->failure.status < 0 || (x->done == x->begun && !a->way.rounds)) return;
    if (keel_clock_ns() - x->looked_ns < PAUSE_NS) return;
    bool moved = false;
    a->comm->passing = true;
    keel_status s = keel_rounds_look(&a->way);
    if (s >= 0 && x->done < x->begun) s = drive_one(p, b, &x->bucket[x->done], &moved);
    if (s < 0) keel_failure_take(&x->failure, s);
    if (moved) drive(p, b);
    a->comm->passing = false;
    x->looked_ns = keel_clock_ns();
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
        const int number = number_of(x, &x->bucket[x->done]);
        const keel_status s = keel_comm_patience(p->across->comm, number, &patience);
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
    x->begun = x->done = 0;
    p->across->comm->meanwhile = NULL;
    return failure.status < 0 ? keel_failure_raise(&failure) : KEEL_OK;
}

/* ---- with options.shard_optimizer -------------------------------------------------------------
 */

int keel_buckets_owner(const keel_program *p, const keel_tile *t)
{
    const keel_buckets *x = p->across->buckets;
    const int n = p->lanes->n_process;
    const keel_bucket *k = x->bucket;
    int q = 0;
    while (t->offset >= k->first[n]) k++;
    while (t->offset >= k->first[q + 1]) q++;
    return q;
}

keel_status keel_buckets_share(const keel_program *p)
{
    keel_buckets *x = p->across->buckets;
    keel_status s = KEEL_OK;
    for (int i = 0; i < x->n && s >= 0; i++) s = start_sharing(p, &x->bucket[i]);
    for (int i = 0; i < x->n && s >= 0; i++) s = keel_comm_wait(p->across->comm, SHARE + i);
    for (int i = 0; i < x->n; i++) x->bucket[i].stage = KEEL_BUCKET_FOLD;
    return s;
}
