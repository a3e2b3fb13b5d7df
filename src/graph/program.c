/* Compiling a graph, and where each of its buffers lies.
 *
 * There are two classes of memory. A value that crosses a segment, or that a weight gradient reads
 * over all rows of a worker, is kept for all the worker's rows; a shard is a row offset in it. A
 * value that lives inside one segment is kept for one block of rows, and the next block uses the
 * same memory. See program.h; calls are bound in bind.c. */
#include "graph/program.h"
#include "base/memory.h"
#include "base/round.h"
#include "graph/across.h"
#include "graph/bind.h"
#include "graph/choose.h"
#include "graph/device_memory.h"
#include "graph/lives.h"
#include "graph/memory_plan.h"
#include "graph/on_device.h"
#include "graph/recompute.h"
#include "graph/widen.h"
#include <limits.h>
#include <string.h>

/* Where the place of a buffer is noted. */
static keel_place *place_of(const keel_program *p, int buffer)
{
    keel_place *const list[] = { p->value, p->grad, p->again };
    const int n = p->graph->n_value;
    return buffer < 3 * n ? &list[buffer / n][buffer % n] : &p->saved[buffer - 3 * n];
}

/* Places the buffers of one class. Time is counted in segments for what is kept for all rows
 * (shards of a segment run one after another), and in instructions for what is kept for one block.
 */
static keel_status place_class(keel_program *p, const keel_lives *l, bool rows_class,
                               int64_t *bytes, int64_t *bound)
{
    const keel_schedule *schedule = &p->schedule;
    keel_status s = KEEL_ENOMEM;
    int n = 0;
    keel_buffer *buffer = keel_calloc((size_t)l->n, sizeof *buffer);
    int *which = keel_calloc((size_t)l->n, sizeof *which);
    if (!buffer || !which) goto out;
    for (int b = 0; b < l->n; b++) {
        const keel_life *x = &l->life[b];
        if (!keel_life_is_placed(l, b) || keel_life_has_all_rows(l, b) != rows_class) continue;
        const bool stays = x->last >= schedule->n_instruction;
        const int first = l->segment_of[x->first];
        const int64_t rows = p->max_local_rows, block = schedule->segment[first].block;
        const int64_t held = rows_class || rows < block ? rows : block;
        int64_t size;
        if (!keel_mul_i64(x->row_bytes, held, &size)) {
            s = keel_fail(KEEL_ESHAPE, "%lld rows of %lld bytes are more than memory can hold",
                          (long long)held, (long long)x->row_bytes);
            goto out;
        }
        which[n] = b;
        buffer[n++] = (keel_buffer){ .bytes = size,
                                     .first = rows_class ? first : x->first,
                                     .last = stays        ? INT_MAX
                                             : rows_class ? l->segment_of[x->last]
                                                          : x->last };
    }
    if ((s = keel_memory_plan(buffer, n, bytes, bound)) < 0) goto out;
    for (int i = 0; i < n; i++)
        *place_of(p, which[i]) =
            (keel_place){ .kind = rows_class ? KEEL_PLACE_ROWS : KEEL_PLACE_SHARD,
                          .at = buffer[i].offset };
out:
    keel_free(buffer);
    keel_free(which);
    return s;
}

/* Members of a root lie where the root lies; each keeps its own row size. */
static void spread_places(keel_program *p, const keel_lives *l)
{
    for (int v = 0; v < p->graph->n_value; v++)
        if (keel_life_is_input(l, v))
            p->value[v] = (keel_place){ .kind = KEEL_PLACE_INPUT, .at = p->graph->value[v].index };
    for (int b = 0; b < l->n; b++) {
        const int root = keel_life_root(l, b);
        if (root != b) *place_of(p, b) = *place_of(p, root);
        place_of(p, b)->row_bytes = l->life[b].row_bytes;
    }
}

/* Decides which values are made again, and where every buffer lies. */
static keel_status plan_memory(keel_program *p)
{
    keel_lives l = { 0 };
    int64_t rows_bound = 0, shard_bound = 0;
    KEEL_TRY(keel_lives_find(&l, p->graph, &p->schedule, p->saved_at, p->output, p->n_output));
    keel_status s = KEEL_OK;
    if (p->options.recompute) {
        s = keel_recompute(&p->schedule, &l);
        keel_lives_free(&l);
        if (s < 0) return s;
        KEEL_TRY(keel_lives_find(&l, p->graph, &p->schedule, p->saved_at, p->output, p->n_output));
    }
    if ((s = place_class(p, &l, true, &p->rows_bytes, &rows_bound)) < 0) goto out;
    if ((s = place_class(p, &l, false, &p->shard_bytes, &shard_bound)) < 0) goto out;
    p->values_bound = rows_bound + shard_bound;
    spread_places(p, &l);
    p->skip_forward = l.skip_forward;
    p->skip_backward = l.skip_backward;
    l.skip_forward = l.skip_backward = NULL;
out:
    keel_lives_free(&l);
    return s;
}

static keel_status check_trainable(const keel_program *p)
{
    const keel_graph *g = p->graph;
    for (int i = 0; g->backward && i < g->n_node; i++) {
        const keel_graph_node *n = &g->node[i];
        bool trains = false;
        for (int k = 0; k < n->node.n_weight && !n->frozen; k++)
            trains = trains || p->trains[n->weight[k]];
        if (trains && !n->node.op->backward[p->options.real == KEEL_FLOAT64])
            return keel_fail(KEEL_EUNSUP,
                             "layer '%s': op %s has no gradient, so its weights would never train; "
                             "set trainable to false",
                             n->node.layer, n->node.op->name);
    }
    for (int i = 0; g->backward && i < p->schedule.n_instruction; i++) {
        const keel_node *n = &g->node[p->schedule.instruction[i].node].node;
        const int r = p->options.real == KEEL_FLOAT64;
        const keel_run_kind k = p->schedule.instruction[i].kind;
        if ((k == KEEL_RUN_BACKWARD && !n->op->backward[r]) ||
            (k == KEEL_RUN_WEIGHTS && !n->op->weights[r]))
            return keel_fail(KEEL_EUNSUP, "layer '%s': op %s cannot be trained", n->layer,
                             n->op->name);
    }
    return KEEL_OK;
}

/* Chooses who makes the gradients of the weights of node i tile by tile. */
static keel_status choose_tiles(keel_program *p, int i)
{
    const keel_graph_node *n = &p->graph->node[i];
    keel_choice c = { .node = &n->node,
                      .pass = KEEL_WEIGHTS,
                      .rows = p->options.max_rows,
                      .narrow = keel_node_is_narrow(&n->node),
                      .tile = true };
    KEEL_TRY(keel_choose_kernel(&p->options, &c));
    keel_ran_note(p, i, KEEL_WEIGHTS, c.kernel, false);
    if (n->node.op->tile_scratch) {
        const int64_t scratch = n->node.op->tile_scratch(&n->node, p->options.max_rows);
        if (scratch > c.scratch) c.scratch = scratch;
        if (c.scratch > INT64_MAX / 64)
            return keel_fail(KEEL_ESHAPE, "layer '%s': a step of %lld rows is too large",
                             n->node.layer, (long long)p->options.max_rows);
    }
    if (c.scratch > p->scratch_bytes) p->scratch_bytes = c.scratch;
    if (c.scratch > p->tile_scratch) p->tile_scratch = c.scratch;
    for (int k = 0; k < n->node.n_weight; k++) {
        const keel_shape *w = &n->node.weight[k].shape;
        const int64_t row = w->rank > 1 ? w->dim[w->rank - 1] : KEEL_TILE;
        const int64_t rows = c.kernel ? c.kernel->tile_rows : 0;
        p->tiled[n->weight[k]] = (struct keel_tiled){
            .node = i,
            .weight = k,
            .run = c.kernel ? c.run_tile : n->node.op->weights_tile[n->node.real == KEEL_FLOAT64],
            .plan = c.plan,
            .most = rows ? rows * row : INT64_MAX
        };
    }
    return KEEL_OK;
}

static keel_status find_tiled(keel_program *p)
{
    p->tiled = keel_calloc((size_t)p->store->n_weight, sizeof *p->tiled);
    if (!p->tiled) return KEEL_ENOMEM;
    for (int v = 0; v < p->store->n_weight; v++) p->tiled[v].node = -1;
    for (int i = 0; i < p->graph->n_node; i++)
        if (p->schedule.tiled[i]) KEEL_TRY(choose_tiles(p, i));
    return KEEL_OK;
}

/* Lists the saved values and the weights of all nodes, node after node. */
static keel_status list_weights(keel_program *p)
{
    const keel_graph *g = p->graph;
    const size_t n = (size_t)g->n_node + 1;
    if (!(p->saved_at = keel_calloc(n, sizeof *p->saved_at))) return KEEL_ENOMEM;
    if (!(p->weight_at = keel_calloc(n, sizeof *p->weight_at))) return KEEL_ENOMEM;
    for (int i = 0; i < g->n_node; i++) {
        p->saved_at[i + 1] = p->saved_at[i] + g->node[i].node.n_saved;
        p->weight_at[i + 1] = p->weight_at[i] + g->node[i].node.n_weight;
    }
    p->saved = keel_calloc((size_t)p->saved_at[g->n_node], sizeof *p->saved);
    p->weight = keel_calloc((size_t)p->weight_at[g->n_node], sizeof *p->weight);
    if (!p->saved || !p->weight) return KEEL_ENOMEM;
    for (int i = 0; i < g->n_node; i++)
        for (int k = 0; k < g->node[i].node.n_weight; k++)
            p->weight[p->weight_at[i] + k] = keel_store_data(p->store, g->node[i].weight[k]);
    return KEEL_OK;
}

keel_status keel_program_settle(keel_program *p)
{
    while (p->n_bound > 0) keel_bound_destroy(p, p->bound[--p->n_bound]);
    KEEL_TRY(keel_device_memory_check(p));
    keel_arenas *a = p->arenas;
    for (int w = 0; w < p->lanes->n_worker; w++) {
        keel_workspace *s = &p->workspace[w];
        KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_ROWS, p->rows_bytes, 1, &s->rows));
        KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_SHARD, p->shard_bytes, 1, &s->shard));
        KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_MERGED, p->merged_doubles, sizeof(double),
                                  &s->merged));
        KEEL_TRY(
            keel_arenas_take(a, w, KEEL_ARENA_SUMS, p->sums_doubles, sizeof(double), &s->sums));
        KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_ROW_RECORDS, p->row_doubles, sizeof(double),
                                  &s->row_records));
        for (int i = 0; i < 2; i++)
            KEEL_TRY(keel_arenas_take(a, w, i ? KEEL_ARENA_RECORD_LAST : KEEL_ARENA_RECORD,
                                      p->record_doubles, sizeof(double), &s->record[i]));
        if (p->graph->backward) {
            KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_GRAD, p->gradient_elements,
                                      (int64_t)keel_dtype_size(p->options.real), &s->grad));
            KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_FOLD, p->fold_bytes, 1, &s->fold));
            KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_TILES, p->tile_bytes, 1, &s->tiles));
        }
        s->weight = p->weight;
        s->host = (keel_host_part){ .scratch = s->scratch,
                                    .merging = (double *)s->scratch,
                                    .grad = s->grad,
                                    .merged = s->merged,
                                    .row_records = s->row_records };
        if (s->on_device) KEEL_TRY(keel_on_device_settle(p, w));
    }
    p->moved = p->arenas->moved;
    return KEEL_OK;
}

static keel_status make_workspaces(keel_program *p)
{
    const int n = p->lanes->n_worker;
    p->workspace = keel_calloc((size_t)n, sizeof *p->workspace);
    p->failure = keel_calloc((size_t)n, sizeof *p->failure);
    if (!p->workspace || !p->failure) return KEEL_ENOMEM;
    for (int w = 0; w < n; w++) {
        keel_workspace *s = &p->workspace[w];
        s->prepared = keel_calloc((size_t)p->graph->n_node, sizeof(*s->prepared));
        if (!s->prepared) return KEEL_ENOMEM;
    }
    KEEL_TRY(keel_on_device_make(p));
    p->arenas = p->options.arenas;
    if (!p->arenas) {
        KEEL_TRY(keel_arenas_create(&p->own_arenas, p->lanes->device, n));
        p->arenas = p->own_arenas;
    }
    return p->options.dry ? KEEL_OK : keel_program_settle(p);
}

static void take_trained(keel_program *p)
{
    const bool *trains = p->options.trains;
    const int64_t line = 64 / (int64_t)keel_dtype_size(p->store->real);
    for (int v = 0; trains && v < p->store->n_weight; v++) {
        const keel_store_weight *w = &p->store->weight[v];
        const int64_t end = keel_round_up(w->offset + w->count, line);
        p->trains[v] = trains[v];
        if (trains[v] && end > p->n_grad) p->n_grad = end;
    }
    p->options.trains = NULL; /* the caller's */
}

keel_status keel_program_create(keel_program **out, keel_graph *graph, const keel_value *outputs,
                                int n_output, keel_store *store, const keel_lanes *lanes,
                                const keel_program_options *options)
{
    keel_status s = KEEL_ENOMEM;
    keel_program *p = keel_calloc(1, sizeof *p);
    if (!p) {
        keel_graph_destroy(graph);
        return s;
    }
    p->graph = graph;
    p->lanes = lanes;
    p->store = store;
    p->options = *options;
    p->n_output = n_output;
    if ((s = keel_store_join(store, &p->user)) < 0) goto out;
    s = KEEL_ENOMEM;
    if (!(p->input = keel_calloc((size_t)graph->n_input, sizeof *p->input))) goto out;
    if (!(p->absent = keel_calloc((size_t)graph->n_input, sizeof *p->absent))) goto out;
    p->coming.input = keel_calloc((size_t)graph->n_input, sizeof *p->coming.input);
    if (!p->coming.input) goto out;
    if (!(p->output = keel_calloc((size_t)n_output, sizeof *p->output))) goto out;
    if (n_output) memcpy(p->output, outputs, (size_t)n_output * sizeof *outputs);
    const size_t nv = (size_t)graph->n_value, nn = (size_t)graph->n_node;
    const bool on_device = keel_lanes_device(lanes);
    if (!(p->trains = keel_calloc((size_t)store->n_weight, sizeof *p->trains))) goto out;
    take_trained(p);
    if (!(p->value = keel_calloc(nv, sizeof *p->value))) goto out;
    if (!(p->grad = keel_calloc(nv, sizeof *p->grad))) goto out;
    if (!(p->again = keel_calloc(nv, sizeof *p->again))) goto out;
    if ((s = list_weights(p)) < 0) goto out;
    s = KEEL_ENOMEM;
    if (!(p->ran = keel_calloc(nn * KEEL_PASS_COUNT, sizeof *p->ran))) goto out;
    if ((s = keel_schedule_make(&p->schedule, graph, p->trains, store->n_weight, on_device,
                                options->micro_batch)) < 0)
        goto out;
    if ((s = check_trainable(p)) < 0) goto out;
    if ((s = find_tiled(p)) < 0) goto out;
    p->max_local_rows = keel_cut_most(lanes, options->max_rows);
    if ((s = plan_memory(p)) < 0) goto out;
    if ((s = keel_records_place(p)) < 0) goto out;
    if ((s = keel_moved_place(p)) < 0) goto out;
    if (graph->backward && (s = keel_gradients_place(p)) < 0) goto out;
    if (graph->backward && (s = keel_tiles_place(p)) < 0) goto out;
    if ((s = make_workspaces(p)) < 0) goto out;
    if ((s = keel_across_create(p)) < 0) goto out;
    *out = p;
    p = NULL;
out:
    keel_program_destroy(p);
    return s;
}

void keel_program_destroy(keel_program *p)
{
    if (!p) return;
    for (int i = 0; i < p->n_bound; i++) keel_bound_destroy(p, p->bound[i]);
    keel_free(p->bound);
    for (int w = 0; p->workspace && w < p->lanes->n_worker; w++) {
        keel_prepared_destroy(&p->workspace[w], p->graph->n_node);
    }
    if (p->user) keel_store_leave(p->store, p->user);
    keel_across_destroy(p->across);
    keel_on_device_free(p);
    keel_arenas_destroy(p->own_arenas);
    keel_free(p->workspace);
    keel_free(p->failure);
    keel_free(p->input);
    keel_free(p->absent);
    keel_free(p->coming.input);
    keel_free(p->output);
    keel_free(p->sums_at);
    keel_free(p->sums_room);
    keel_free(p->sums_segment);
    keel_free(p->area);
    keel_free(p->merged_at);
    keel_free(p->merged_backward_at);
    keel_moved_free(p);
    keel_schedule_free(&p->schedule, p->graph);
    keel_free(p->tiled);
    keel_free(p->gradient);
    keel_free(p->trains);
    keel_free(p->value);
    keel_free(p->grad);
    keel_free(p->again);
    keel_free(p->saved_at);
    keel_free(p->weight_at);
    keel_free(p->weight);
    keel_free(p->saved);
    keel_free(p->skip_forward);
    keel_free(p->skip_backward);
    keel_free(p->ran);
    keel_graph_destroy(p->graph);
    keel_free(p);
}
