/* Binding a program to a number of rows: each worker gets an array of calls, with kernels prepared
 * and pointers set, so a step only runs through the array. The few pointers into the batch are set
 * when a step begins. */
#include "graph/bind.h"
#include "base/memory.h"
#include "base/round.h"
#include "graph/across.h"
#include "graph/device_memory.h"
#include "graph/on_device.h"

typedef struct binder {
    keel_program *p;
    keel_bound *b;
    keel_bound_workspace *s;
    int worker, segment;
    int64_t block; /* the worker's row at which the block being bound begins */
    bool *begun;   /* [n_node * n_shard] this gradient has a part already, of an earlier block */
} binder;

/* ---- pointers -------------------------------------------------------------------------------- */

static char *address(const binder *x, const keel_place *at, int64_t local_row)
{
    const keel_workspace *workspace = &x->p->workspace[x->worker];
    switch (at->kind) {
    case KEEL_PLACE_ROWS:
        return workspace->rows + at->at + local_row * at->row_bytes;
    case KEEL_PLACE_SHARD:
        return workspace->shard + at->at + (local_row - x->block) * at->row_bytes;
    default:
        return NULL;
    }
}

/* Where a call reads or writes a value. */
static const keel_place *place_for(const binder *x, keel_run_kind kind, keel_value v)
{
    const keel_program *p = x->p;
    return keel_reads_again(&p->schedule, p->graph, kind, v) ? &p->again[v] : &p->value[v];
}

/* A pointer to a value: into the worker's own rows, or into the batch, set at each step. */
static void bind_value(binder *x, const void **pointer, const keel_place *at, int64_t row,
                       int64_t local_row)
{
    if (at->kind == KEEL_PLACE_INPUT)
        x->s->patch[x->s->n_patch++] =
            (keel_patch){ .pointer = pointer, .input = (int)at->at, .offset = row * at->row_bytes };
    else
        *pointer = address(x, at, local_row);
}

/* Takes the next n pointers of a block. */
static void **take(void ***next, int n)
{
    void **at = *next;
    *next += n;
    return at;
}

/* Where a call writes its records. */
static void bind_records(const binder *x, keel_bound_call *bc)
{
    const keel_program *p = x->p;
    const keel_workspace *workspace = &p->workspace[x->worker];
    const keel_node *n = bc->call.node;
    const int64_t length = keel_records_of(n, bc->pass);
    if (length == 0) return;
    bc->call.partial = workspace->row_records;
    bc->fold =
        (keel_fold){ .stack = bc->pass <= KEEL_BACKWARD ? workspace->sums + p->sums_at[bc->node]
                                                        : workspace->record[p->area[x->segment]],
                     .length = length,
                     .leaf = keel_node_leaf(n, bc->pass),
                     .stride = keel_records_stride(p, n, bc->pass),
                     .combine = keel_records_combine(p, n, bc->pass),
                     .upward = keel_segment_upward(x->segment) };
}

/* Prepares the kernel of an instruction for this number of rows. */
static keel_status prepare_for(binder *x, const keel_instruction *in, int64_t rows,
                               bool weight_adds, const keel_prepared **out)
{
    const keel_pass pass = keel_run_pass(in->kind);
    const bool *adds = x->p->schedule.in_adds[in->node];
    const bool in_adds =
        pass == KEEL_BACKWARD && x->p->graph->node[in->node].node.n_in > 0 && adds[0];
    return keel_prepare_call(x->p, x->worker, in->node, pass, rows, in_adds, weight_adds, out);
}

/* Whether the instruction is a view that shares the memory of its input, so there is nothing to
 * run. */
static bool is_skipped(const keel_program *p, const keel_instruction *in)
{
    return (in->kind == KEEL_RUN_FORWARD && p->skip_forward[in->node]) ||
           (in->kind == KEEL_RUN_BACKWARD && p->skip_backward[in->node]);
}

/* Adds a call for rows [row, row + rows) of the step, which are the worker's rows from local_row
 * on. */
static keel_status bind_call(binder *x, const keel_instruction *in, int64_t row, int64_t rows,
                             int64_t local_row, bool weight_adds)
{
    keel_program *p = x->p;
    const keel_graph_node *n = &p->graph->node[in->node];
    const keel_pass pass = keel_run_pass(in->kind);
    const bool backward = keel_is_backward(in->kind);
    const keel_prepared *e = NULL;
    if (is_skipped(p, in)) return KEEL_OK;
    KEEL_TRY(prepare_for(x, in, rows, weight_adds, &e));
    const keel_node *d = &n->node;
    const int n_pointer =
        2 * (d->n_in + d->n_out) + d->n_saved + (pass == KEEL_WEIGHTS ? d->n_weight : 0);
    void **pointers = keel_calloc((size_t)n_pointer, sizeof *pointers), **next = pointers;
    if (!pointers) return KEEL_ENOMEM;
    x->s->block[x->s->n_block++] = pointers;
    keel_bound_call *bc = &x->s->call[x->s->n_call++];
    keel_call *c = &bc->call;
    bc->node = in->node;
    bc->pass = pass;
    *c = (keel_call){ .node = &n->node,
                      .step = &p->facts,
                      .rows = rows,
                      .row = row,
                      .in = (const void **)take(&next, d->n_in),
                      .in_grad = take(&next, d->n_in),
                      .out = take(&next, d->n_out),
                      .out_grad = (const void **)take(&next, d->n_out),
                      .saved = take(&next, d->n_saved),
                      .weight = keel_moved_weights(p, x->worker, in->node),
                      .weight_grad = take(&next, pass == KEEL_WEIGHTS ? d->n_weight : 0),
                      .in_adds = p->schedule.in_adds[in->node],
                      .weight_adds = weight_adds,
                      .plan = keel_prepared_plan(e),
                      .device = p->lanes->device[x->worker],
                      .facts = keel_on_device_facts(&p->workspace[x->worker]) };
    bc->run = e->run;
    bc->staged = keel_prepared_on_host(e, c->device);
    for (int k = 0; k < n->node.n_in; k++)
        bind_value(x, &c->in[k], place_for(x, in->kind, n->in[k]), row, local_row);
    for (int k = 0; k < d->n_out; k++)
        c->out[k] = address(x, place_for(x, in->kind, n->out[k]), local_row);
    for (int k = 0; k < d->n_saved; k++)
        c->saved[k] = address(x, &p->saved[p->saved_at[in->node] + k], local_row);
    const double *merged = p->workspace[x->worker].merged;
    if (n->node.merged) c->merged = c->merged_forward = merged + p->merged_at[in->node];
    if (backward) {
        for (int k = 0; k < d->n_out; k++)
            if (p->schedule.has_grad[n->out[k]])
                c->out_grad[k] = address(x, &p->grad[n->out[k]], local_row);
        if (n->node.merged_backward) c->merged = merged + p->merged_backward_at[in->node];
        if (pass == KEEL_BACKWARD)
            for (int k = 0; k < n->node.n_in; k++)
                if (p->schedule.needs_grad[n->in[k]])
                    c->in_grad[k] = address(x, &p->grad[n->in[k]], local_row);
    }
    bind_records(x, bc);
    return KEEL_OK;
}

static keel_status bind_weights_call(binder *x, const keel_instruction *in, const keel_shard *shard)
{
    const bool adds = keel_gradients_adds(x->p, in->node, shard);
    KEEL_TRY(bind_call(x, in, shard->row, shard->rows, shard->local_row, adds));
    keel_bound_call *c = &x->s->call[x->s->n_call - 1];
    return keel_gradients_bind(x->p, x->worker, shard, c);
}

/* Binds weight gradients: one call for each shard of the worker. Gradients that are read from
 * merged records are made once, by the worker that has the first row of the step. */
static keel_status bind_weights_calls(binder *x, const keel_instruction *in)
{
    const keel_bound *b = x->b;
    const keel_node *n = &x->p->graph->node[in->node].node;
    const bool merged = keel_weights_from_merged(n);
    const int most = !merged ? b->n_shard : b->n_busy > 0 && b->piece[0].row == 0;
    for (int i = 0; i < most; i++)
        if (b->shard[i].worker == x->worker) KEEL_TRY(bind_weights_call(x, in, &b->shard[i]));
    return KEEL_OK;
}

/* Where blocks go through at once: one call for the rows of each shard in the block, which adds to
 * what earlier blocks have left. Shards that share a place have one gradient. */
static keel_status bind_weights_of_block(binder *x, const keel_instruction *in, int64_t row,
                                         int64_t end)
{
    const keel_bound *b = x->b;
    for (int i = 0; i < b->n_shard; i++) {
        keel_shard part = b->shard[i];
        if (part.worker != x->worker || part.row >= end || part.row + part.rows <= row) continue;
        const int64_t first = part.row > row ? part.row : row;
        const int64_t last = part.row + part.rows < end ? part.row + part.rows : end;
        bool *begun = &x->begun[in->node * b->n_shard + part.leaf];
        part.local_row += first - part.row;
        part.row = first;
        part.rows = last - first;
        part.leaf_adds = *begun;
        *begun = true;
        KEEL_TRY(bind_weights_call(x, in, &part));
    }
    return KEEL_OK;
}

/* ---- shards ---------------------------------------------------------------------------------- */

/* A call of a vendor's kernel has the rows of one shard, or a part of it that depends on the shard
 * alone. So the call is the same whichever worker makes it. */

static int64_t shards_of(const binder *x)
{
    return keel_shards_common(x->p->lanes, x->b->rows);
}

static int64_t shard_begin(const binder *x, int64_t shard)
{
    return keel_cut_first(x->b->rows, shards_of(x), shard);
}

static int64_t shard_at(const binder *x, int64_t row)
{
    return row * shards_of(x) / x->b->rows;
}

static bool is_vendors(const keel_prepared *e)
{
    return e->kernel && e->kernel->vendor;
}

/* How many of the rows [begin, end) of the step a call may have. `upward`: rows are taken from the
 * beginning, else from the end. */
static keel_status rows_of_call(binder *x, const keel_instruction *in, int64_t begin, int64_t end,
                                bool upward, int64_t *rows)
{
    const keel_node *n = &x->p->graph->node[in->node].node;
    const int64_t most = keel_records_rows(x->p->lanes, keel_node_leaf(n, keel_run_pass(in->kind)));
    *rows = end - begin < most ? end - begin : most;
    if (!shards_of(x) || is_skipped(x->p, in)) return KEEL_OK;
    const int64_t border =
        upward ? shard_begin(x, shard_at(x, begin) + 1) : shard_begin(x, shard_at(x, end - 1));
    const int64_t inside = upward ? border - begin : end - border;
    const keel_prepared *e;
    if (inside >= *rows) return KEEL_OK;
    KEEL_TRY(prepare_for(x, in, inside, false, &e));
    if (!is_vendors(e)) KEEL_TRY(prepare_for(x, in, *rows, false, &e));
    if (is_vendors(e)) *rows = inside;
    return KEEL_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* How many of the `left` remaining rows the next call of a segment takes. Blocks have nearly the
 * same size, so that few kernels are prepared. */
static int64_t block_of(const keel_segment *segment, int64_t left)
{
    const int64_t blocks = keel_div_up(left, segment->block);
    return keel_div_up(left, blocks);
}

static int64_t blocks_of(const keel_segment *segment, int64_t rows)
{
    return keel_div_up(rows, segment->block);
}

/* Upper bounds of the calls, and of the pointers into the batch, that bind_workspace makes. */
static void count_calls(const binder *x, size_t *calls, size_t *patches)
{
    const keel_schedule *s = &x->p->schedule;
    *calls = *patches = 0;
    for (int g = 0; g < s->n_segment; g++) {
        const keel_segment *segment = &s->segment[g];
        int64_t blocks = 0;
        for (int i = 0; i < x->b->n_shard; i++)
            if (x->b->shard[i].worker == x->worker)
                blocks += blocks_of(segment, x->b->shard[i].rows);
        for (int at = segment->begin; at < segment->end; at++) {
            const int node = s->instruction[at].node;
            const keel_instruction *in = &s->instruction[at];
            const int64_t length =
                keel_node_leaf(&x->p->graph->node[node].node, keel_run_pass(in->kind));
            int64_t most = at < segment->weights
                               ? blocks + x->s->rows / keel_records_rows(x->p->lanes, length)
                               : 0;
            if (in->kind == KEEL_RUN_WEIGHTS) most += x->s->n_shard;
            *calls += (size_t)most;
            *patches += (size_t)most * (size_t)x->p->graph->node[node].node.n_in;
        }
    }
}

/* Binds the calls of a segment for one block of rows of a run. If rows leave records, a call has so
 * few rows that their records are still in the cache when they are folded. */
static keel_status bind_block(binder *x, const keel_segment *segment, const keel_piece *run,
                              int64_t row, int64_t rows)
{
    const bool upward = keel_segment_upward(x->segment);
    x->block = run->local_row + row;
    for (int at = segment->begin; at < segment->weights; at++) {
        const keel_instruction *in = &x->p->schedule.instruction[at];
        if (in->kind == KEEL_RUN_WEIGHTS) {
            KEEL_TRY(bind_weights_of_block(x, in, run->row + row, run->row + row + rows));
            continue;
        }
        for (int64_t begin = row, end = row + rows, some; begin < end;) {
            KEEL_TRY(rows_of_call(x, in, run->row + begin, run->row + end, upward, &some));
            const int64_t first = upward ? begin : end - some;
            KEEL_TRY(bind_call(x, in, run->row + first, some, run->local_row + first, false));
            *(upward ? &begin : &end) += upward ? some : -some;
        }
    }
    return KEEL_OK;
}

/* The rows of a run that are cut into blocks together: all rows, or as many whole shards as fit a
 * block, but at least one. */
static int64_t stretch_of(const binder *x, const keel_segment *segment, const keel_piece *run,
                          int64_t begin, int64_t end, bool upward)
{
    if (!shards_of(x)) return end - begin;
    const int64_t most = keel_div_up(x->b->rows, shards_of(x));
    const int64_t shards = segment->block > most ? segment->block / most : 1;
    if (upward) {
        const int64_t to = shard_begin(x, shard_at(x, run->row + begin) + shards) - run->row;
        return (to < end ? to : end) - begin;
    }
    const int64_t from = shard_at(x, run->row + end - 1) + 1 - shards;
    const int64_t to = from > 0 ? shard_begin(x, from) - run->row : begin;
    return end - (to > begin ? to : begin);
}

static keel_status bind_blocks(binder *x, const keel_segment *segment, const keel_piece *run)
{
    const bool upward = keel_segment_upward(x->segment);
    for (int64_t begin = 0, end = run->rows, left = 0, rows; begin < end; left -= rows) {
        if (left == 0) left = stretch_of(x, segment, run, begin, end, upward);
        rows = block_of(segment, left);
        KEEL_TRY(bind_block(x, segment, run, upward ? begin : end - rows, rows));
        *(upward ? &begin : &end) += upward ? rows : -rows;
    }
    return KEEL_OK;
}

/* Lanes on one core run as one, so that weights are read once for all of them. */
static keel_status bind_segment(binder *x, int g)
{
    const keel_bound *b = x->b;
    const keel_schedule *s = &x->p->schedule;
    const keel_segment *segment = &s->segment[g];
    const bool upward = keel_segment_upward(g);
    x->segment = g;
    for (int k = 0; k < b->n_run; k++) {
        const keel_piece *run = &b->run[upward ? k : b->n_run - 1 - k];
        if (run->worker == x->worker) KEEL_TRY(bind_blocks(x, segment, run));
    }
    x->s->weights[g] = x->s->n_call;
    for (int at = segment->weights; at < segment->end; at++)
        KEEL_TRY(bind_weights_calls(x, &s->instruction[at]));
    return KEEL_OK;
}

static keel_status bind_workspace(binder *x)
{
    const keel_schedule *s = &x->p->schedule;
    const keel_bound *b = x->b;
    keel_bound_workspace *workspace = x->s;
    size_t calls, patches;
    for (int i = 0; i < b->n_busy; i++)
        if (b->piece[i].worker == x->worker) workspace->rows += b->piece[i].rows;
    for (int i = 0; i < b->n_shard; i++) workspace->n_shard += b->shard[i].worker == x->worker;
    count_calls(x, &calls, &patches);
    workspace->first = keel_calloc((size_t)s->n_segment + 1, sizeof *workspace->first);
    workspace->weights = keel_calloc((size_t)s->n_segment, sizeof *workspace->weights);
    workspace->call = keel_calloc(calls, sizeof *workspace->call);
    workspace->block = keel_calloc(calls, sizeof *workspace->block);
    workspace->patch = keel_calloc(patches, sizeof *workspace->patch);
    if (!workspace->first || !workspace->weights || !workspace->call || !workspace->block ||
        !workspace->patch)
        return KEEL_ENOMEM;
    x->begun = keel_calloc((size_t)x->p->graph->n_node * (size_t)b->n_shard, sizeof *x->begun);
    if (!x->begun) return KEEL_ENOMEM;
    keel_status status = KEEL_OK;
    for (int g = 0; g < s->n_segment && status >= 0; g++) {
        workspace->first[g] = workspace->n_call;
        status = bind_segment(x, g);
    }
    workspace->first[s->n_segment] = workspace->n_call;
    keel_free(x->begun);
    return status;
}

/* Gives each worker one scratch buffer, large enough for the largest call of any bound, and gives
 * the calls its address. */
static keel_status place_scratch(keel_program *p)
{
    KEEL_TRY(keel_device_memory_check(p));
    for (int w = 0; w < p->lanes->n_worker; w++) {
        keel_workspace *workspace = &p->workspace[w];
        void *at = NULL;
        KEEL_TRY(keel_arenas_take(p->arenas, w, KEEL_ARENA_SCRATCH, p->scratch_bytes, 1, &at));
        workspace->scratch = workspace->host.scratch = at;
        workspace->host.merging = at;
        if (workspace->on_device) { /* copies from its scratch may still be under way in a merge */
            const int64_t calls = keel_round_up(p->host_scratch_bytes, 64);
            KEEL_TRY(keel_arenas_take(p->arenas, w, KEEL_ARENA_HOST_SCRATCH, calls + p->merge_bytes,
                                      1, &at));
            workspace->host.scratch = at;
            workspace->host.merging = (double *)((char *)at + calls);
        }
        for (int i = 0; i < p->n_bound; i++)
            for (int k = 0; k < p->bound[i]->workspace[w].n_call; k++) {
                keel_bound_call *c = &p->bound[i]->workspace[w].call[k];
                c->call.scratch = c->staged ? workspace->host.scratch : workspace->scratch;
            }
    }
    if (p->moved != p->arenas->moved)
        for (int i = 0; i < p->n_bound; i++) keel_on_device_forget(p, p->bound[i]);
    p->moved = p->arenas->moved; /* no other pointer has moved since the program settled */
    return KEEL_OK;
}

static keel_status new_bound(keel_program *p, int64_t rows, keel_bound **out)
{
    const int n_part = p->lanes->n_part, n_worker = p->lanes->n_worker;
    keel_status s = KEEL_ENOMEM;
    keel_piece all[KEEL_LANES_MAX];
    keel_bound *b = keel_calloc(1, sizeof *b);
    if (!b) return s;
    b->rows = rows;
    b->piece = keel_calloc((size_t)n_part, sizeof *b->piece);
    b->workspace = keel_calloc((size_t)n_worker, sizeof *b->workspace);
    b->run = keel_calloc((size_t)n_part, sizeof *b->run);
    if (!b->piece || !b->run || !b->workspace) goto out;
    keel_cut(p->lanes, rows, all);
    for (int i = 0; i < n_part; i++) {
        if (all[i].rows == 0) continue;
        b->piece[b->n_busy++] = all[i];
    }
    b->n_run = keel_pieces_join(b->piece, b->n_busy, b->run);
    if ((s = keel_records_bind(b, p->lanes)) < 0) goto out;
    if ((s = keel_across_bind(b, p->lanes)) < 0) goto out;
    if ((s = keel_gradients_cut(b, p->lanes)) < 0) goto out;
    for (int w = 0; w < n_worker; w++) {
        binder x = { .p = p, .b = b, .s = &b->workspace[w], .worker = w };
        if ((s = bind_workspace(&x)) < 0) goto out;
    }
    *out = b;
    b = NULL;
    s = KEEL_OK;
out:
    keel_bound_destroy(p, b);
    return s;
}

keel_status keel_program_bind(keel_program *p, int64_t rows, const keel_bound **out)
{
    if (p->moved != p->arenas->moved) KEEL_TRY(keel_program_settle(p));
    for (int i = 0; i < p->n_bound; i++)
        if (p->bound[i]->rows == rows) {
            *out = p->bound[i];
            return KEEL_OK;
        }
    if (rows < 1 || rows > p->options.max_rows)
        return keel_fail(KEEL_EARG,
                         "a step of %lld rows, but the program was planned for 1 to %lld",
                         (long long)rows, (long long)p->options.max_rows);
    if (p->n_bound == p->bound_capacity) {
        const int capacity = 2 * p->bound_capacity + 4;
        void *larger = keel_grow(p->bound, (size_t)capacity, sizeof(*p->bound));
        if (!larger) return KEEL_ENOMEM;
        p->bound = larger;
        p->bound_capacity = capacity;
    }
    keel_bound *b = NULL;
    KEEL_TRY(new_bound(p, rows, &b));
    p->bound[p->n_bound++] = b;
    const keel_status s = place_scratch(p);
    if (s < 0) {
        keel_bound_destroy(p, b);
        p->n_bound--;
        return s;
    }
    *out = b;
    return KEEL_OK;
}

/* Measures the scratch that the kernels of a segment need for the first and largest block of a run.
 */
static keel_status measure_run(binder *x, const keel_segment *segment, const keel_piece *run)
{
    const keel_prepared *ignored;
    const int64_t rows = block_of(segment, stretch_of(x, segment, run, 0, run->rows, true));
    for (int at = segment->begin; at < segment->weights; at++) {
        const keel_instruction *in = &x->p->schedule.instruction[at];
        int64_t some;
        KEEL_TRY(rows_of_call(x, in, run->row, run->row + rows, true, &some));
        KEEL_TRY(prepare_for(x, in, some, false, &ignored));
        if (in->kind == KEEL_RUN_WEIGHTS) KEEL_TRY(prepare_for(x, in, some, true, &ignored));
    }
    return KEEL_OK;
}

static keel_status measure_shard(binder *x, const keel_segment *segment, const keel_shard *shard)
{
    const keel_prepared *ignored;
    for (int at = segment->weights; at < segment->end; at++) {
        const keel_instruction *in = &x->p->schedule.instruction[at];
        KEEL_TRY(
            prepare_for(x, in, shard->rows, keel_gradients_adds(x->p, in->node, shard), &ignored));
    }
    return KEEL_OK;
}

keel_status keel_program_measure(keel_program *p, int64_t rows)
{
    keel_piece piece[KEEL_LANES_MAX], run[KEEL_LANES_MAX];
    keel_bound b = { .rows = rows, .run = run };
    keel_cut(p->lanes, rows, piece);
    b.n_run = keel_pieces_join(piece, p->lanes->n_part, run);
    keel_status s = keel_gradients_cut(&b, p->lanes);
    for (int g = 0; g < p->schedule.n_segment; g++) {
        const keel_segment *segment = &p->schedule.segment[g];
        for (int i = 0; s >= 0 && i < b.n_run; i++)
            s = measure_run(&(binder){ .p = p, .b = &b, .worker = run[i].worker }, segment,
                            &run[i]);
        for (int i = 0; s >= 0 && i < b.n_shard; i++)
            s = measure_shard(&(binder){ .p = p, .b = &b, .worker = b.shard[i].worker }, segment,
                              &b.shard[i]);
    }
    keel_gradients_uncut(&b);
    return s;
}

void keel_bound_destroy(const keel_program *p, keel_bound *b)
{
    if (!b) return;
    keel_on_device_forget(p, b);
    for (int w = 0; b->workspace && w < p->lanes->n_worker; w++) {
        keel_bound_workspace *s = &b->workspace[w];
        for (int i = 0; i < s->n_block; i++) keel_free(s->block[i]);
        for (int i = 0; s->call && i < s->n_call; i++) keel_free(s->call[i].add);
        keel_free(s->block);
        keel_free(s->call);
        keel_free(s->first);
        keel_free(s->weights);
        keel_free(s->patch);
    }
    keel_gradients_uncut(b);
    keel_across_unbind(b);
    keel_free(b->workspace);
    keel_free(b->piece);
    keel_free(b->run);
    keel_free(b->tree);
    keel_free(b->fold[0]);
    keel_free(b->fold[1]);
    keel_free(b);
}
