/* Running a bound program: the loop of a step. No allocation, no lock, no system call. */
#include "base/memory.h"
#include "graph/across.h"
#include "graph/bind.h"
#include "graph/buckets.h"
#include "graph/on_device.h"
#include <string.h>

void keel_bound_patch(const keel_bound_workspace *s, const void *const *input)
{
    for (int i = 0; i < s->n_patch; i++) {
        const char *base = input[s->patch[i].input];
        *s->patch[i].pointer = base ? base + s->patch[i].offset : NULL;
    }
}

void keel_program_call(const keel_program *p, const keel_bound *b, const keel_bound_call *c,
                       int worker)
{
    const size_t element = keel_dtype_size(p->options.real);
    keel_on_device *x = p->workspace[worker].on_device;
    if (x) {
        if (keel_on_device_replays(x, (int)(c - b->workspace[worker].call))) return;
        const keel_status s = keel_on_device_call(p, b, c, worker);
        if (s < 0) keel_call_failed(&c->call, s);
        return;
    }
    for (int i = 0; i < c->n_clear; i++) memset(c->add[i].to, 0, (size_t)c->add[i].count * element);
    c->run(&c->call);
    if (c->fold.stack)
        keel_records_fold(b, c, &p->workspace[worker], p->workspace[worker].row_records);
    for (int i = c->n_clear; i < c->n_add; i++) keel_gradients_add(p->options.real, &c->add[i]);
}

/* A device is told of a call and computes it later; a timer waits for that. */
static void timed_call(const keel_program *p, const keel_bound_call *c, int worker, int64_t *at)
{
    const keel_on_device *x = p->workspace[worker].on_device;
    const keel_status s = x ? keel_device_reach(x->device, KEEL_COMPUTE_STREAM) : KEEL_OK;
    if (s < 0) keel_call_failed(&c->call, s);
    *at = keel_timing_call(p->timing, worker, c->node, c->pass, *at);
}

static void run_calls(const keel_program *p, const keel_bound *b, int begin, int end, int worker)
{
    const keel_bound_workspace *workspace = &b->workspace[worker];
    const bool looks = worker == 0 && p->across && p->across->buckets;
    int64_t at = p->timing ? keel_clock_ns() : 0;
    for (int i = begin; i < end; i++) {
        const keel_bound_call *c = &workspace->call[i];
        keel_program_call(p, b, c, worker);
        if (p->timing) timed_call(p, c, worker, &at);
        if (!looks) continue;
        keel_buckets_look(p, b);
        if (p->timing) at = keel_clock_ns();
    }
}

void keel_program_meet(const keel_program *p, keel_team *team, int worker)
{
    const int64_t begin = p->timing ? keel_clock_ns() : 0;
    keel_team_meet(team);
    if (p->timing) keel_timing_phase(p->timing, worker, KEEL_PHASE_WAIT, begin);
}

static void failed_across(const keel_program *p, keel_status s)
{
    if (s < 0 && p->failure[0].status >= 0) keel_failure_take(&p->failure[0], s);
}

/* By worker 0: what it does for all, while the others wait for it. */
static void exchange_for_all(const keel_program *p, int worker,
                             keel_status (*exchange)(void *context), void *context)
{
    if (worker != 0) return;
    const int64_t begin = p->timing ? keel_clock_ns() : 0;
    failed_across(p, exchange(context));
    if (p->timing) keel_timing_phase(p->timing, worker, KEEL_PHASE_WAIT, begin);
}

void keel_program_meet_across(const keel_program *p, keel_team *team, int worker,
                              keel_status (*exchange)(void *context), void *context)
{
    if (!p->across) return;
    keel_program_meet(p, team, worker);
    exchange_for_all(p, worker, exchange, context);
    keel_program_meet(p, team, worker);
}

typedef struct exchanging {
    const keel_program *p;
    const keel_bound *b;
    int segment;
} exchanging;

static keel_status receive_records(void *context)
{
    const exchanging *x = context;
    return keel_records_receive(x->p);
}

static keel_status exchange_records(void *context)
{
    const exchanging *x = context;
    KEEL_TRY(keel_records_send(x->p, x->b, x->segment));
    return receive_records(context);
}

static bool merges_after(const keel_program *p, int g)
{
    return g + 1 < p->schedule.n_segment && p->schedule.segment[g + 1].merge >= 0;
}

/* Statistics that backward merges behind a segment. They are complete before the weight gradients
 * of the segment, and travel while these are computed. Devices leave them when all is computed. */
static bool sends_early(const keel_program *p, int g)
{
    return p->across && merges_after(p, g) && p->schedule.segment[g + 1].merge_backward &&
           p->across->buckets && !keel_lanes_device(p->lanes);
}

static void send_early(const keel_program *p, const keel_bound *b, int g, keel_team *team,
                       int worker)
{
    keel_program_meet(p, team, worker);
    if (worker == 0) failed_across(p, keel_records_send(p, b, g + 1));
}

/* All have their gradients: these leave while statistics may still be on their way. */
static void receive_early(const keel_program *p, const keel_bound *b, int g, keel_team *team,
                          int worker)
{
    keel_program_meet(p, team, worker);
    keel_buckets_pass(p, b, worker);
    exchange_for_all(p, worker, receive_records, &(exchanging){ p, b, g + 1 });
    keel_program_meet(p, team, worker);
}

/* The end of a segment that others wait for. */
static void meet_after(const keel_program *p, const keel_bound *b, int g, keel_team *team,
                       int worker)
{
    if (sends_early(p, g))
        receive_early(p, b, g, team, worker);
    else if (p->across && merges_after(p, g))
        keel_program_meet_across(p, team, worker, exchange_records, &(exchanging){ p, b, g + 1 });
    else
        keel_program_meet(p, team, worker);
}

/* Each worker for itself, which saves a second meeting. */
void keel_program_merge(const keel_program *p, const keel_bound *b, int g, int worker)
{
    const keel_segment *segment = &p->schedule.segment[g];
    if (segment->merge < 0 || p->failure[worker].status < 0) return;
    const int64_t begin = p->timing ? keel_clock_ns() : 0;
    keel_records_merge(p, b, g, worker);
    if (!segment->merge_backward) keel_moved_see(p, segment->merge, worker);
    if (p->timing) keel_timing_phase(p->timing, worker, KEEL_PHASE_MERGE, begin);
}

/* Behind a merge. On devices the host may not have the records. */
static void help(const keel_program *p, const keel_bound *b, int g, int worker)
{
    const keel_segment *segment = &p->schedule.segment[g];
    const keel_workspace *workspace = &p->workspace[worker];
    if (!p->help || segment->merge < 0 || b->workspace[worker].rows > 0 || workspace->on_device ||
        p->failure[worker].status < 0)
        return;
    const int64_t *at = segment->merge_backward ? p->merged_backward_at : p->merged_at;
    p->help(p->help_for, segment->merge, workspace->host.merged + at[segment->merge]);
}

/* The calls of a segment: those of rows, then those of weight gradients. */
static void compute(const keel_program *p, const keel_bound *b, int g, keel_team *team, int worker)
{
    const keel_bound_workspace *workspace = &b->workspace[worker];
    keel_failure *f = &p->failure[worker];
    const int weights = workspace->weights[g];
    if (f->status >= 0) run_calls(p, b, workspace->first[g], weights, worker);
    if (sends_early(p, g)) send_early(p, b, g, team, worker);
    if (f->status < 0) return;
    run_calls(p, b, weights, workspace->first[g + 1], worker);
    const keel_status s = keel_call_status_take();
    if (s < 0) keel_failure_take(f, s);
}

/* What a device has computed of a segment goes where it is needed. Devices do not wait for the sums
 * of a worker that has failed. */
static void end_on_device(keel_program *p, const keel_bound *b, int g, int worker)
{
    keel_failure *f = &p->failure[worker];
    const bool on_device = p->workspace[worker].on_device;
    if (on_device && f->status >= 0) {
        const keel_status s = keel_on_device_segment(p, b, worker, g);
        if (s < 0) keel_failure_take(f, s);
    }
    if (f->status < 0) keel_on_device_give_up(p);
    if (!on_device || g + 1 < p->schedule.n_segment) return;
    const keel_status s = keel_on_device_end(p, b, worker);
    if (s < 0 && f->status >= 0) keel_failure_take(f, s);
    if (s < 0) keel_on_device_give_up(p);
}

void keel_program_begin(keel_program *p, const keel_bound *b, int worker)
{
    keel_workspace *workspace = &p->workspace[worker];
    keel_on_device *device = workspace->on_device;
    keel_failure *f = &p->failure[worker];
    f->status = KEEL_OK;
    workspace->last_tiled = -1;
    workspace->bad_row = INT64_MAX;
    const keel_status begun = device ? keel_on_device_begin(p, b, worker) : KEEL_OK;
    if (begun < 0) keel_failure_take(f, begun);
    keel_bound_patch(&b->workspace[worker], device ? device->base : p->input);
}

/* Behind a segment, the last one whose gradients of a worker the host has. */
static int gradients_until(const keel_program *p, const keel_bound *b, int g, int worker)
{
    const bool come = p->workspace[worker].on_device && g + 1 < p->schedule.n_segment;
    return come && p->failure[worker].status >= 0 ? keel_on_device_came(p, b, worker) : g;
}

keel_status keel_program_run(keel_program *p, const keel_bound *b, keel_team *team, int worker)
{
    const bool exchanges = p->across && p->across->buckets;
    keel_program_begin(p, b, worker);
    if (worker == 0 && exchanges) keel_buckets_begin(p, b);
    for (int g = 0; g < p->schedule.n_segment; g++) {
        keel_program_merge(p, b, g, worker);
        help(p, b, g, worker);
        compute(p, b, g, team, worker);
        end_on_device(p, b, g, worker);
        if (exchanges) keel_buckets_arrive(p, worker, gradients_until(p, b, g, worker));
        if (p->schedule.segment[g].meets) meet_after(p, b, g, team, worker);
        if (exchanges) keel_buckets_pass(p, b, worker);
    }
    return p->failure[worker].status;
}

const void *keel_program_rows(const keel_program *p, const keel_place *at, const keel_piece *piece)
{
    if (at->kind == KEEL_PLACE_INPUT)
        return (const char *)p->input[at->at] + piece->row * at->row_bytes;
    return p->workspace[piece->worker].rows + at->at + piece->local_row * at->row_bytes;
}

const void *keel_program_output(const keel_program *p, int i, const keel_piece *piece)
{
    const keel_place *at = &p->value[p->output[i]];
    const keel_on_device *x = p->workspace[piece->worker].on_device;
    if (x && at->kind != KEEL_PLACE_INPUT)
        return x->outputs + x->output_at[i] + piece->local_row * at->row_bytes;
    return keel_program_rows(p, at, piece);
}

bool keel_program_has_rows(const keel_program *p, int worker)
{
    return p->workspace[worker].on_device && keel_on_device_has_rows(p, worker);
}

void keel_program_commit(keel_program *p, const keel_bound *b, int worker)
{
    (void)b;
    for (int k = 0; k < p->schedule.n_commit; k++) {
        const int i = p->schedule.commit[k].node;
        const keel_graph_node *n = &p->graph->node[i];
        n->node.op->commit(&n->node, p->workspace[worker].host.merged + p->merged_at[i],
                           p->weight + p->weight_at[i]);
    }
}
