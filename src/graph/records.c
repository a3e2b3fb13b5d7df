/* Records: what rows leave to be combined over the whole step (statistics of BatchNorm, sums of
 * losses and metrics). A call writes one record for each of its rows. Records are folded at once,
 * in the order of the step's tree, so a worker keeps only a few, however many rows it has. A stack
 * holds the largest nodes of the tree among the rows so far, one after another, as {rows, record}.
 */
#include "base/memory.h"
#include "base/tree.h"
#include "graph/across.h"
#include "graph/bind.h"
#include "graph/moments.h"
#include "graph/on_device.h"
#include <math.h>
#include <string.h>

KEEL_USES_OP(batch_norm);

/* Bytes of records that one call may write before they are folded: what stays in a core's cache,
 * and more for a device, which small calls would leave idle. */
enum { RECORD_BYTES = 256 << 10, RECORD_BYTES_THERE = 32 << 20 };

int64_t keel_records_of(const keel_node *n, keel_pass pass)
{
    if (n->sums > 0 && pass <= KEEL_BACKWARD) return n->sums;
    if (pass == KEEL_PARTIAL) return n->partial;
    return pass == KEEL_PARTIAL_BACKWARD ? n->partial_backward : 0;
}

/* A loss has no forward while it trains: what its rows leave before backward is combined as what
 * they leave before forward, and its sums are added. Devices and cores, in whatever process,
 * combine records alike. */
keel_combine keel_records_combine(const keel_program *p, const keel_node *n, keel_pass pass)
{
    const bool sums = pass <= KEEL_BACKWARD, backward = pass == KEEL_PARTIAL_BACKWARD;
    if (sums ? n->op->loss : backward && !n->op->loss) return NULL;
    return keel_lanes_any_device(p->lanes) && n->op == &keel_op_batch_norm ? keel_moments_combine
                                                                           : n->op->combine;
}

int64_t keel_records_rows(const keel_lanes *l, int64_t leaf)
{
    const int64_t bytes = keel_lanes_device(l) ? RECORD_BYTES_THERE : RECORD_BYTES;
    const int64_t rows = leaf > 0 ? bytes / (int64_t)sizeof(double) / leaf : INT64_MAX;
    return rows > 1 ? rows : 1;
}

/* Doubles of the record of so many rows. */
static int64_t record_of(int64_t length, int64_t leaf, int64_t rows)
{
    int64_t own;
    return leaf < length && keel_mul_i64(leaf, rows, &own) && own < length ? own : length;
}

int64_t keel_records_stride(const keel_program *p, const keel_node *n, keel_pass pass)
{
    return 1 + record_of(keel_records_of(n, pass), keel_node_leaf(n, pass), p->max_local_rows);
}

/* ---- where they lie -----------------------------------------------------------------------------
 */

/* Parts of a worker's rows with other workers' rows between them are not joined. */
static int most_runs(const keel_lanes *l)
{
    int runs[KEEL_LANES_MAX] = { 0 }, most = 1;
    for (int i = 0; i < l->n_part; i++) {
        const int w = l->part[i].worker;
        if (i > 0 && l->part[i - 1].worker == w) continue;
        if (++runs[w] > most) most = runs[w];
    }
    return most;
}

static keel_status too_many(const keel_program *p, const keel_node *n)
{
    return keel_fail(KEEL_ESHAPE, "layer '%s': statistics of %lld rows are too many", n->layer,
                     (long long)p->options.max_rows);
}

/* One area serves all nodes that meet, one after another. There are two areas, because a worker may
 * write the next records while another still merges the last ones. */
static keel_status measure_node(keel_program *p, const keel_node *n, keel_pass pass)
{
    const int64_t length = keel_records_of(n, pass), leaf = keel_node_leaf(n, pass);
    const bool meets = pass > KEEL_BACKWARD;
    const int64_t most = INT64_MAX / 64;
    const int64_t levels =
        (p->lanes->n_process > 1 ? 2 : 1) * (keel_tree_levels(p->options.max_rows) + 1);
    /* records that grow are together as long as all of their rows */
    const int64_t longest = leaf < length ? leaf : length + 1,
                  many = leaf < length ? p->options.max_rows : levels;
    int64_t stack, rows = keel_records_rows(p->lanes, leaf), merge;
    if (rows > p->max_local_rows) rows = p->max_local_rows;
    if (length >= most || !keel_mul_i64(keel_records_stride(p, n, pass), p->slots, &stack) ||
        stack >= most || !keel_mul_i64(leaf, rows, &rows) || rows >= most ||
        !keel_mul_i64(longest, many * (int64_t)sizeof(double), &merge) || merge >= most)
        return too_many(p, n);
    if (meets && stack > p->record_doubles) p->record_doubles = stack;
    if (rows > p->row_doubles) p->row_doubles = rows;
    if (meets && merge > p->merge_bytes) p->merge_bytes = merge;
    if (p->merge_bytes > p->scratch_bytes) p->scratch_bytes = p->merge_bytes;
    return KEEL_OK;
}

/* Reserves room for the sums of a node on every worker and, if there are many, room to merge them.
 */
static keel_status place_sums(keel_program *p, int node)
{
    const keel_node *n = &p->graph->node[node].node;
    int64_t all;
    if (n->sums >= INT32_MAX || !keel_mul_i64(n->sums + 1, p->slots, &all) ||
        all >= INT64_MAX / 64 - p->sums_doubles)
        return too_many(p, n);
    p->sums_doubles += all;
    if (n->sums <= KEEL_SUMS_MAX || n->sums <= p->sums_most) return KEEL_OK;
    keel_free(p->sums_room);
    p->sums_room =
        keel_calloc((KEEL_TREE_LEVELS_MAX + 2) * ((size_t)n->sums + 1), sizeof *p->sums_room);
    p->sums_most = n->sums;
    return p->sums_room ? KEEL_OK : KEEL_ENOMEM;
}

keel_status keel_records_place(keel_program *p)
{
    const int n = p->graph->n_node;
    int64_t **const tables[] = { &p->sums_at, &p->merged_at, &p->merged_backward_at };
    if (p->options.max_rows >= (int64_t)1 << KEEL_TREE_LEVELS_MAX)
        return keel_fail(KEEL_EARG, "a step of %lld rows is too large",
                         (long long)p->options.max_rows);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!(*tables[i] = keel_calloc((size_t)n, sizeof(int64_t)))) return KEEL_ENOMEM;
    if (!(p->sums_segment = keel_calloc((size_t)n, sizeof *p->sums_segment))) return KEEL_ENOMEM;
    if (!(p->area = keel_calloc((size_t)p->schedule.n_segment, sizeof *p->area)))
        return KEEL_ENOMEM;
    p->slots = most_runs(p->lanes) * keel_tree_nodes(p->options.max_rows);
    for (int i = 0; i < n; i++) {
        const keel_node *d = &p->graph->node[i].node;
        if (d->partial >= INT64_MAX / 64 - p->merged_doubles ||
            d->partial_backward >= INT64_MAX / 64 - p->merged_doubles - d->partial)
            return too_many(p, d);
        p->merged_at[i] = p->merged_doubles;
        p->merged_backward_at[i] = p->merged_at[i] + d->merged;
        p->merged_doubles = p->merged_backward_at[i] + d->merged_backward;
        p->sums_at[i] = p->sums_doubles;
        if (d->sums > 0) KEEL_TRY(place_sums(p, i));
        KEEL_TRY(measure_node(p, d, KEEL_PARTIAL));
        KEEL_TRY(measure_node(p, d, KEEL_PARTIAL_BACKWARD));
        KEEL_TRY(measure_node(p, d, KEEL_FORWARD));
    }
    for (int g = 0; g < p->schedule.n_segment; g++) {
        const keel_segment *s = &p->schedule.segment[g];
        p->area[g] = g > 0 && (p->area[g - 1] != (s->merge >= 0));
        for (int at = s->begin; at < s->end; at++) {
            const keel_run_kind kind = p->schedule.instruction[at].kind;
            if (kind == KEEL_RUN_FORWARD || kind == KEEL_RUN_BACKWARD)
                p->sums_segment[p->schedule.instruction[at].node] = g;
        }
    }
    return KEEL_OK;
}

/* ---- the tree of a step -------------------------------------------------------------------------
 */

/* Plans how each row of a run folds, and which nodes the run leaves. base [upward]: where it begins
 * in its worker's stack, above the nodes of all runs that fold before it, because its stack is
 * higher while it folds than in the end. [own_begin, own_end): the rows of this process, which
 * merges its nodes. */
static void plan_run(keel_bound *b, const keel_piece *run, const int base[2], int64_t own_begin,
                     int64_t own_end)
{
    const int64_t begin = run->row, end = begin + run->rows;
    const int first = b->n_tree;
    for (int64_t row = begin; row < end; b->n_tree++) {
        const int64_t next = keel_tree_next(b->rows, row, end);
        b->tree[b->n_tree] = (keel_tree_part){
            .worker = run->worker,
            .closes = keel_tree_closes(b->rows, row, next, own_begin, own_end, true),
        };
        row = next;
    }
    for (int i = first; i < b->n_tree; i++) {
        b->tree[i].slot[false] = base[false] + b->n_tree - 1 - i;
        b->tree[i].slot[true] = base[true] + i - first;
    }
    for (int upward = 0; upward < 2; upward++) {
        int depth = base[upward];
        for (int64_t i = 0; i < end - begin; i++) {
            const int64_t row = upward ? begin + i : end - 1 - i;
            const int closes = keel_tree_closes(b->rows, row, row + 1, begin, end, upward);
            b->fold[upward][row] =
                (keel_fold_row){ .depth = (uint16_t)depth, .closes = (uint16_t)closes };
            depth += 1 - closes;
        }
    }
}

/* How many nodes a run leaves. */
static int nodes_left(const keel_bound *b, const keel_piece *run)
{
    const int64_t end = run->row + run->rows;
    int n = 0;
    for (int64_t row = run->row; row < end; row = keel_tree_next(b->rows, row, end)) n++;
    return n;
}

keel_status keel_records_bind(keel_bound *b, const keel_lanes *l)
{
    int64_t own_begin, own_end;
    int before[KEEL_LANES_MAX] = { 0 }, behind[KEEL_LANES_MAX] = { 0 };
    b->tree = keel_calloc((size_t)(b->n_run * keel_tree_nodes(b->rows)), sizeof *b->tree);
    for (int upward = 0; upward < 2; upward++) {
        b->fold[upward] = keel_calloc((size_t)b->rows, sizeof *b->fold[upward]);
        if (!b->fold[upward]) return KEEL_ENOMEM;
    }
    if (!b->tree) return KEEL_ENOMEM;
    keel_lanes_rows(l, b->rows, l->process, &own_begin, &own_end);
    for (int i = 0; i < b->n_run; i++) behind[b->run[i].worker] += nodes_left(b, &b->run[i]);
    for (int i = 0; i < b->n_run; i++) {
        const int w = b->run[i].worker, n = nodes_left(b, &b->run[i]);
        behind[w] -= n;
        plan_run(b, &b->run[i], (const int[2]){ behind[w], before[w] }, own_begin, own_end);
        before[w] += n;
    }
    return KEEL_OK;
}

/* ---- in the step --------------------------------------------------------------------------------
 */

static void combine(const keel_node *n, const keel_fold *f, double *left, double *right,
                    double *out)
{
    const double rows = left[0] + right[0];
    keel_combine_records(n, f->combine, f->length, (keel_record){ left[0], left + 1 },
                         (keel_record){ right[0], right + 1 }, out + 1);
    out[0] = rows;
}

void keel_records_push(const keel_node *n, const keel_fold *f, double *stack, int depth, int closes,
                       const double *leaf)
{
    const int64_t stride = f->stride;
    double *top = stack + depth * stride;
    if (closes == 0) {
        top[0] = 1;
        memcpy(top + 1, leaf, (size_t)f->leaf * sizeof *leaf);
        return;
    }
    top -= stride;
    const keel_record below = { top[0], top + 1 }, row = { 1, leaf };
    keel_combine_records(n, f->combine, f->length, f->upward ? below : row, f->upward ? row : below,
                         top + 1);
    top[0]++;
    for (int i = 1; i < closes; i++) {
        double *next = top - stride;
        combine(n, f, f->upward ? next : top, f->upward ? top : next, next);
        top = next;
    }
}

void keel_records_fold(const keel_bound *b, const keel_bound_call *c, keel_workspace *workspace,
                       const double *records)
{
    const keel_fold *f = &c->fold;
    for (int64_t i = 0; i < c->call.rows; i++) {
        const int64_t k = f->upward ? i : c->call.rows - 1 - i, row = c->call.row + k;
        const double *leaf = records + k * f->leaf;
        const keel_fold_row *how = &b->fold[f->upward][row];
        keel_records_push(c->call.node, f, f->stack, how->depth, how->closes, leaf);
        if (c->call.node->op->loss && c->pass <= KEEL_BACKWARD && row < workspace->bad_row &&
            !(isfinite(leaf[0]) && isfinite(leaf[f->leaf - 1])))
            workspace->bad_row = row;
    }
}

/* Nodes that follow each other in the order of rows, and where their records lie. */
typedef struct merging {
    const keel_node *node;
    keel_combine combine;
    int64_t length, leaf, stride; /* as in keel_fold */
    bool upward;                  /* in the order in which the records were folded */
    double *temporary;            /* a stack as high as the tree */
} merging;

static int64_t length_of(const merging *m, const keel_record *part)
{
    return record_of(m->length, m->leaf, (int64_t)part->rows);
}

/* Where node `top` of a stack of merged nodes lies: records are one behind the other. */
static double *place_of(const merging *m, const keel_record *part, int top)
{
    double *at = m->temporary;
    for (int i = 0; i < top; i++) at += length_of(m, &part[i]);
    return at;
}

static void push_node(const merging *m, keel_record *part, int *n, const double *at, int closes)
{
    part[(*n)++] = (keel_record){ at[0], at + 1 };
    for (int c = closes; c > 0; c--, (*n)--) {
        double *out = place_of(m, part, *n - 2);
        keel_combine_records(m->node, m->combine, m->length, part[*n - 2], part[*n - 1], out);
        part[*n - 2] = (keel_record){ part[*n - 2].rows + part[*n - 1].rows, out };
    }
}

/* Writes the nodes that are left, each `stride` behind the one before. */
static void leave(const merging *m, const keel_record *part, int n, double *out, int64_t stride)
{
    for (int i = 0; i < n; i++) {
        out[i * stride] = part[i].rows;
        memcpy(out + i * stride + 1, part[i].data, (size_t)length_of(m, &part[i]) * sizeof *out);
    }
}

/* Merges what the workers of this process have left into its largest nodes: alone, into the root.
 */
static void merge_own(const keel_bound *b, const merging *m, const double *const *stack,
                      double *out, int64_t stride)
{
    keel_record part[KEEL_TREE_NODES_MAX + 1];
    int n = 0;
    for (int i = 0; i < b->n_tree; i++) {
        const keel_tree_part *t = &b->tree[i];
        push_node(m, part, &n, stack[t->worker] + t->slot[m->upward] * m->stride, t->closes);
    }
    leave(m, part, n, out, stride);
}

static merging merging_of(const keel_program *p, int segment, double *temporary)
{
    const keel_segment *s = &p->schedule.segment[segment];
    const keel_node *n = &p->graph->node[s->merge].node;
    const keel_pass pass = s->merge_backward ? KEEL_PARTIAL_BACKWARD : KEEL_PARTIAL;
    return (merging){ .node = n,
                      .combine = keel_records_combine(p, n, pass),
                      .length = keel_records_of(n, pass),
                      .leaf = keel_node_leaf(n, pass),
                      .stride = keel_records_stride(p, n, pass),
                      .upward = keel_segment_upward(segment - 1),
                      .temporary = temporary };
}

static void merge_workers(const keel_program *p, const keel_bound *b, const merging *m, int segment,
                          double *out)
{
    const double *stack[KEEL_LANES_MAX];
    for (int w = 0; w < p->lanes->n_worker; w++)
        stack[w] = p->workspace[w].record[p->area[segment - 1]];
    merge_own(b, m, stack, out, m->length + 1);
}

void keel_records_merge(const keel_program *p, const keel_bound *b, int segment, int worker)
{
    const keel_segment *s = &p->schedule.segment[segment];
    const keel_workspace *workspace = &p->workspace[worker];
    const merging m = merging_of(p, segment, workspace->host.merging);
    if (workspace->on_device && keel_on_device_merges(p, segment)) return;
    double *merged = workspace->host.merged +
                     (s->merge_backward ? p->merged_backward_at : p->merged_at)[s->merge];
    if (p->across)
        memcpy(merged, p->across->records, (size_t)(m.length + 1) * sizeof *merged);
    else
        merge_workers(p, b, &m, segment, merged);
    /* behind the last call it would be on its way when the step ends, and nobody reads it */
    const keel_bound_workspace *calls = &b->workspace[worker];
    if (calls->first[segment] < calls->n_call)
        keel_on_device_merged(workspace, merged, m.length + 1);
}

static void join_records(const void *context, double *left, const double *right)
{
    const merging *m = context;
    keel_combine_records(m->node, m->combine, m->length, (keel_record){ left[0], left + 1 },
                         (keel_record){ right[0], right + 1 }, left + 1);
    left[0] += right[0];
}

static void join_on_the_way(const void *context, double *left, const double *right)
{
    const keel_program *p = context;
    const merging m = merging_of(p, p->across->segment, p->workspace[0].host.merging);
    join_records(&m, left, right);
}

keel_status keel_records_send(const keel_program *p, const keel_bound *b, int segment)
{
    keel_across *x = p->across;
    const merging m = merging_of(p, segment, p->workspace[0].host.merging);
    merge_workers(p, b, &m, segment, x->records);
    x->segment = segment;
    x->way = (keel_rounds_way){ b->rounds,    x->comm,         &x->tables, x->records,
                                m.length + 1, join_on_the_way, p };
    return keel_rounds_begin(&x->way);
}

keel_status keel_records_receive(const keel_program *p)
{
    return keel_rounds_end(&p->across->way);
}

/* ---- sums --------------------------------------------------------------------------------------
 */

static merging summing(const keel_program *p, int node, double *temporary)
{
    const keel_node *n = &p->graph->node[node].node;
    return (merging){ .node = n,
                      .combine = keel_records_combine(p, n, KEEL_FORWARD),
                      .length = n->sums,
                      .leaf = n->sums,
                      .stride = n->sums + 1,
                      .upward = keel_segment_upward(p->sums_segment[node]),
                      .temporary = temporary };
}

static void sum_workers(const keel_program *p, const keel_bound *b, const merging *m, int node,
                        double *out, int64_t stride)
{
    const double *stack[KEEL_LANES_MAX];
    for (int w = 0; w < p->lanes->n_worker; w++) stack[w] = p->workspace[w].sums + p->sums_at[node];
    merge_own(b, m, stack, out, stride);
}

/* Where the sums of an op begin in a node of all sums. */
static int64_t sums_before(const keel_program *p, int node)
{
    return p->sums_at[node] / p->slots;
}

static void join_sums(const void *context, double *left, const double *right)
{
    const keel_program *p = context;
    for (int i = 0; i < p->graph->n_node; i++) {
        if (p->graph->node[i].node.sums == 0) continue;
        const merging m = summing(p, i, NULL);
        join_records(&m, left + sums_before(p, i), right + sums_before(p, i));
    }
}

keel_status keel_sums_exchange(const keel_program *p, const keel_bound *b)
{
    keel_across *x = p->across;
    for (int i = 0; i < p->graph->n_node; i++) {
        if (p->graph->node[i].node.sums == 0) continue;
        const merging m = summing(p, i, x->temporary);
        sum_workers(p, b, &m, i, x->sums + sums_before(p, i), x->sums_length);
    }
    return keel_rounds_run(b->rounds, x->comm, &x->tables, x->sums, x->sums_length, join_sums, p);
}

void keel_program_sums(const keel_program *p, const keel_bound *b, int node, double *sums)
{
    const int64_t length = p->graph->node[node].node.sums;
    const size_t n_bytes = (size_t)length * sizeof *sums;
    double few[(KEEL_TREE_LEVELS_MAX + 2) * (KEEL_SUMS_MAX + 1)];
    if (p->across) {
        memcpy(sums, p->across->sums + sums_before(p, node) + 1, n_bytes);
        return;
    }
    double *merged = length > KEEL_SUMS_MAX ? p->sums_room : few;
    const merging m = summing(p, node, merged + length + 1);
    memset(merged, 0, ((size_t)length + 1) * sizeof *merged);
    sum_workers(p, b, &m, node, merged, length + 1);
    memcpy(sums, merged + 1, n_bytes);
}

int64_t keel_program_bad_row(const keel_program *p)
{
    int64_t row = INT64_MAX;
    for (int w = 0; w < p->lanes->n_worker; w++)
        if (p->workspace[w].bad_row < row) row = p->workspace[w].bad_row;
    return row < INT64_MAX ? row : -1;
}
