/* Records of rows whose worker has a device: see on_device.h. Statistics are folded on the device,
 * if it can; then the few nodes that are left go to the host, where workers meet, or, if one device
 * has all rows, the root is the merged record, and no host waits. Sums of losses and metrics are
 * needed when the run has ended, so the host folds them then. What neither is for, the host folds
 * behind its call, and waits for it. */
#include "base/memory.h"
#include "graph/moments.h"
#include "graph/on_device.h"

static bool is_of_sums(const keel_bound_call *c)
{
    return c->pass <= KEEL_BACKWARD;
}

/* ---- where they lie -------------------------------------------------------------------------- */

keel_status keel_on_device_place_sums(const keel_program *p, keel_on_device *x)
{
    const int64_t most = (8 << 20) / (int64_t)sizeof(double); /* with more, the host waits */
    const int n = p->graph->n_node;
    if (!(x->row_sums_at = keel_calloc((size_t)n, sizeof *x->row_sums_at))) return KEEL_ENOMEM;
    for (int i = 0; i < n; i++) {
        int64_t doubles;
        x->row_sums_at[i] = x->sums_doubles;
        if (!keel_mul_i64(p->graph->node[i].node.sums, p->max_local_rows, &doubles) ||
            doubles > most - x->sums_doubles) {
            x->sums_doubles = 0;
            return KEEL_OK;
        }
        x->sums_doubles += doubles;
    }
    return KEEL_OK;
}

/* ---- on the device --------------------------------------------------------------------------- */

/* Whether the worker's device folds records of this pass of a node: those that are added, and
 * BatchNorm's. */
static bool folds(const keel_program *p, int worker, const keel_node *n, keel_pass pass)
{
    const keel_combine combine = keel_records_combine(p, n, pass);
    return p->lanes->device[worker]->type->fold && (!combine || combine == keel_moments_combine);
}

static keel_pass pass_before(const keel_segment *s)
{
    return s->merge_backward ? KEEL_PARTIAL_BACKWARD : KEEL_PARTIAL;
}

/* Whether calls read state that others of the same step move, which the host does: moved.c. */
static bool moves_within(const keel_program *p)
{
    for (int i = 0; p->moved_of && i < p->graph->n_node; i++)
        if (p->moved_of[i]) return true;
    return false;
}

bool keel_on_device_merges(const keel_program *p, int segment)
{
    const keel_segment *s = &p->schedule.segment[segment];
    const keel_node *n = &p->graph->node[s->merge].node;
    return p->lanes->n_worker == 1 && !p->across && !moves_within(p) &&
           folds(p, 0, n, pass_before(s));
}

static bool is_locked(const keel_program *p, int worker, keel_arena_kind kind)
{
    return p->arenas->buffer[worker * KEEL_ARENA_KINDS + (int)kind].locked;
}

bool keel_on_device_folds_alone(const keel_program *p, const keel_bound_call *c, int worker)
{
    if (!c->fold.stack) return true;
    if (!is_of_sums(c)) return folds(p, worker, c->call.node, c->pass);
    return p->workspace[worker].on_device->sums_doubles > 0 &&
           is_locked(p, worker, KEEL_ARENA_HOST_ROW_SUMS);
}

bool keel_on_device_records_stay(const keel_program *p, int worker, int segment)
{
    const keel_segment *next = &p->schedule.segment[segment + 1];
    if (next->merge < 0) return true;
    return keel_on_device_merges(p, segment + 1) &&
           (next->merge_backward || is_locked(p, worker, KEEL_ARENA_HOST_MERGED));
}

/* Enqueues the pushes of the call's rows, so many at a time. held: as keel_device_fold.held. */
static void fold_there(const keel_on_device *x, const keel_bound *b, const keel_bound_call *c,
                       double *stack, int32_t *held)
{
    const keel_fold *f = &c->fold;
    const keel_node *n = c->call.node;
    for (int64_t done = 0; done < c->call.rows;) {
        const int64_t left = c->call.rows - done;
        const int64_t rows = left < KEEL_FOLD_ROWS ? left : KEEL_FOLD_ROWS;
        const int64_t first = f->upward ? done : left - rows;
        keel_device_fold w = { .node = n,
                               .moments = f->combine != NULL,
                               .length = f->length,
                               .places =
                                   f->combine ? keel_row_count(&n->in[0]) / (f->length / 2) : 0,
                               .stack = stack,
                               .leaf = c->call.partial + first * f->leaf,
                               .rows = (int)rows,
                               .upward = f->upward };
        for (int i = 0; i < rows; i++) {
            const int64_t row = c->call.row + first + (f->upward ? i : rows - 1 - i);
            const keel_fold_row *how = &b->fold[f->upward][row];
            int depth = how->depth;
            if (i == 0) {
                w.depth = depth;
                for (int k = 0; k < depth; k++) w.held[k] = held[k];
            }
            w.closes[i] = (uint8_t)how->closes;
            held[depth] = 1;
            for (int k = how->closes; k > 0; k--, depth--) held[depth - 1] += held[depth];
        }
        x->device->type->fold(x->device, &w);
        done += rows;
    }
}

/* ---- in a run -------------------------------------------------------------------------------- */

static int64_t first_row(const keel_bound *b, int worker)
{
    for (int i = 0; i < b->n_busy; i++)
        if (b->piece[i].worker == worker) return b->piece[i].row;
    return 0;
}

/* The host's place for the sums of the call's rows. */
static double *sums_of(const keel_on_device *x, const keel_bound *b, const keel_bound_call *c,
                       int worker)
{
    return x->row_sums + x->row_sums_at[c->node] +
           (c->call.row - first_row(b, worker)) * c->fold.leaf;
}

keel_status keel_on_device_fold(const keel_program *p, const keel_bound *b,
                                const keel_bound_call *c, int worker)
{
    keel_workspace *s = &p->workspace[worker];
    keel_on_device *x = s->on_device;
    keel_device *d = x->device;
    const int64_t bytes = c->call.rows * c->fold.leaf * (int64_t)sizeof(double);
    const int area = c->fold.stack == s->record[1];
    if (is_of_sums(c) && x->sums_doubles > 0) {
        d->type->copy_out(d, KEEL_COMPUTE_STREAM, sums_of(x, b, c, worker), c->call.partial, bytes);
        return KEEL_OK;
    }
    if (!is_of_sums(c) && folds(p, worker, c->call.node, c->pass)) {
        fold_there(x, b, c, x->record[area], x->held[area]);
        return KEEL_OK;
    }
    d->type->copy_out(d, KEEL_COMPUTE_STREAM, s->host.row_records, c->call.partial, bytes);
    KEEL_TRY(keel_device_reach(d, KEEL_COMPUTE_STREAM));
    keel_device_touches(d, s->host.row_records, bytes, false);
    keel_records_fold(b, c, s, s->host.row_records);
    return KEEL_OK;
}

keel_status keel_on_device_send_records(const keel_program *p, const keel_bound *b, int worker,
                                        int segment)
{
    const keel_segment *next = &p->schedule.segment[segment + 1];
    if (next->merge < 0) return KEEL_OK;
    const keel_workspace *s = &p->workspace[worker];
    const keel_on_device *x = s->on_device;
    const keel_node *n = &p->graph->node[next->merge].node;
    keel_device *d = x->device;
    if (!folds(p, worker, n, pass_before(next))) return KEEL_OK;
    const int area = p->area[segment];
    const int64_t length = keel_records_of(n, pass_before(next));
    const int64_t record = (length + 1) * (int64_t)sizeof(double);
    if (keel_on_device_merges(p, segment + 1)) {
        const int64_t at =
            (next->merge_backward ? p->merged_backward_at : p->merged_at)[next->merge];
        d->type->copy(d, s->merged + at, x->record[area], record);
        if (!next->merge_backward) /* for the commit */
            d->type->copy_out(d, KEEL_COMPUTE_STREAM, s->host.merged + at, s->merged + at, record);
        return KEEL_OK;
    }
    int64_t nodes = 0;
    for (int i = 0; i < b->n_tree; i++) nodes += b->tree[i].worker == worker;
    d->type->copy_out(d, KEEL_COMPUTE_STREAM, s->record[area], x->record[area], nodes * record);
    KEEL_TRY(keel_device_reach(d, KEEL_COMPUTE_STREAM));
    keel_device_touches(d, s->record[area], nodes * record, false);
    return KEEL_OK;
}

void keel_on_device_fold_sums(const keel_program *p, const keel_bound *b, int worker)
{
    keel_workspace *s = &p->workspace[worker];
    const keel_on_device *x = s->on_device;
    const keel_bound_workspace *w = &b->workspace[worker];
    if (x->sums_doubles == 0) return;
    for (int i = 0; i < w->n_call; i++) {
        const keel_bound_call *c = &w->call[i];
        if (!c->fold.stack || !is_of_sums(c)) continue;
        const double *leaf = sums_of(x, b, c, worker);
        keel_device_touches(x->device, leaf, c->call.rows * c->fold.leaf * (int64_t)sizeof(double),
                            false);
        keel_records_fold(b, c, s, leaf);
    }
}
