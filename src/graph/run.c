/* Running a bound program: the loop of a step. No allocation, no lock, no system call. */
#include "base/memory.h"
#include "graph/program.h"
#include <string.h>

static void patch_inputs(const keel_program *p, const keel_bound_seat *s)
{
    for (int i = 0; i < s->n_patch; i++) {
        const char *base = p->input[s->patch[i].input];
        *s->patch[i].pointer = base ? base + s->patch[i].offset : NULL;
    }
}

/* Every worker merges all rows' records into its own copy: a few microseconds of arithmetic instead
 * of a second meeting. Row order, doubles: the same bits for every cut. */
static void merge(const keel_program *p, const keel_bound *b, const keel_segment *g, int worker)
{
    const keel_node *n = &p->graph->node[g->merge].node;
    double *merged = p->seat[worker].merged;
    if (g->merge_backward)
        n->op->merge_backward(n, p->record + p->record_backward_at[g->merge], b->rows,
                              merged + p->merged_backward_at[g->merge]);
    else
        n->op->merge(n, p->record + p->record_at[g->merge], b->rows,
                     merged + p->merged_at[g->merge]);
}

static void clear_sums(const keel_program *p, const keel_bound *b, int worker)
{
    for (int i = 0; i < b->n_busy; i++) {
        if (b->piece[i].worker != worker) continue;
        for (int k = 0; k < p->graph->n_node; k++)
            if (p->graph->node[k].node.sums)
                memset((double *)b->sums[i] + p->sums_at[k], 0,
                       (size_t)p->graph->node[k].node.sums * sizeof(double));
    }
}

static void run_calls(const keel_program *p, const keel_bound_seat *seat, int g, int worker)
{
    if (!p->timing) {
        for (int i = seat->first[g]; i < seat->first[g + 1]; i++)
            seat->call[i].run(&seat->call[i].call);
        return;
    }
    int64_t at = keel_clock_ns();
    for (int i = seat->first[g]; i < seat->first[g + 1]; i++) {
        const keel_bound_call *c = &seat->call[i];
        c->run(&c->call);
        at = keel_timing_call(p->timing, worker, c->node, c->pass, at);
    }
}

void keel_program_meet(const keel_program *p, keel_team *team, int worker)
{
    const int64_t begin = p->timing ? keel_clock_ns() : 0;
    keel_team_meet(team);
    if (p->timing) keel_timing_phase(p->timing, worker, KEEL_PHASE_WAIT, begin);
}

keel_status keel_program_run(keel_program *p, const keel_bound *b, keel_team *team, int worker)
{
    const keel_bound_seat *seat = &b->seat[worker];
    keel_failure *f = &p->failure[worker];
    f->status = KEEL_OK;
    p->seat[worker].tiled = -1;
    patch_inputs(p, seat);
    clear_sums(p, b, worker);
    for (int g = 0; g < p->schedule.n_segment; g++) {
        const keel_segment *segment = &p->schedule.segment[g];
        if (segment->merge >= 0 && f->status >= 0) {
            const int64_t begin = p->timing ? keel_clock_ns() : 0;
            merge(p, b, segment, worker);
            if (p->timing) keel_timing_phase(p->timing, worker, KEEL_PHASE_MERGE, begin);
        }
        if (f->status >= 0) {
            run_calls(p, seat, g, worker);
            const keel_status s = keel_call_status_take();
            if (s < 0) keel_failure_take(f, s);
        }
        if (segment->meets) keel_program_meet(p, team, worker);
    }
    return f->status;
}

const void *keel_program_rows(const keel_program *p, const keel_place *at, const keel_piece *piece)
{
    if (at->kind == KEEL_PLACE_INPUT)
        return (const char *)p->input[at->at] + piece->row * at->row_bytes;
    return p->seat[piece->worker].rows + at->at + piece->local_row * at->row_bytes;
}

void keel_program_tile(const keel_program *p, const keel_bound *b, int worker, keel_variable v,
                       int64_t first, int64_t count, void *grad, bool *looked, bool *bad,
                       keel_tile_move *move)
{
    const keel_store *store = p->store;
    const int64_t element = (int64_t)keel_dtype_size(store->real);
    const struct keel_late *late = &p->late[v];
    const keel_graph_node *n = &p->graph->node[late->node];
    keel_span span[KEEL_LANES_MAX];
    keel_tile_call c = { .node = &n->node,
                         .span = span,
                         .weight = late->weight,
                         .first = first,
                         .count = count,
                         .grad = grad,
                         .looked = looked,
                         .bad = bad,
                         .move = move,
                         .n_soon = 1,
                         .soon = { (const char *)keel_store_data(store, v) + first * element },
                         .scratch = p->seat[worker].scratch,
                         .again = p->seat[worker].tiled == v,
                         .plan = late->plan };
    for (int k = 0; !looked && k < store->n_moment; k++)
        c.soon[c.n_soon++] = store->moment[k] + (store->weight[v].offset + first) * element;
    for (int i = 0; i < b->n_busy; i++) {
        const keel_piece *piece = &b->piece[i];
        if (i > 0 && piece->worker == b->piece[i - 1].worker) {
            span[c.n_span - 1].rows += piece->rows;
            continue;
        }
        span[c.n_span++] =
            (keel_span){ .in = keel_program_rows(p, &p->value[n->in[0]], piece),
                         .out_grad = keel_program_rows(p, &p->grad[n->out[0]], piece),
                         .rows = piece->rows };
    }
    if (!c.again) p->seat[worker].tiled = v;
    late->run(&c);
}

const void *keel_program_output(const keel_program *p, int i, const keel_piece *piece)
{
    return keel_program_rows(p, &p->value[p->output[i]], piece);
}

void keel_program_sums(const keel_program *p, const keel_bound *b, int node, double *sums)
{
    const int64_t n = p->graph->node[node].node.sums;
    for (int64_t k = 0; k < n; k++) sums[k] = 0;
    for (int i = 0; i < b->n_busy; i++)
        for (int64_t k = 0; k < n; k++) sums[k] += b->sums[i][p->sums_at[node] + k];
}

void keel_program_commit(keel_program *p, const keel_bound *b, int worker)
{
    (void)b;
    for (int i = 0; i < p->graph->n_node; i++) {
        const keel_graph_node *n = &p->graph->node[i];
        if (!n->node.op->commit || !n->node.training) continue;
        n->node.op->commit(&n->node, p->seat[worker].merged + p->merged_at[i],
                           p->weight + p->weight_at[i]);
    }
}
