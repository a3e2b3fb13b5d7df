/* A step of many small calls would cost a device more to be told of than to do. So stretches of
 * calls, between which the host has nothing to do, are captured once for each number of rows, and a
 * step replays them. Before step 1 that is done for all row counts that are known; a step of
 * another one does it when it begins.
 *
 *     calls      | c | c | c | staged | c | c | c | c | c |  c  | c | c |
 *     segments   |       0        |       1       |    2     |    3   |
 *     stretches  |<--------->|        |<--------------->|  |<--------->|
 *                                                   gradients go out
 *
 * A stretch ends where the host runs a call, where gradients go out, and where records go to the
 * host. Pointers are kept in a graph, so there is one for each slot of rows; what else differs from
 * step to step are facts, which calls read from the device's memory. */
#include "base/memory.h"
#include "graph/on_device.h"
#include <stdio.h>
#include <string.h>

enum { LEAST = 2 }; /* calls; fewer are not worth a graph */

static int64_t first_row(const keel_bound *b, int worker)
{
    for (int i = 0; i < b->n_busy; i++)
        if (b->piece[i].worker == worker) return b->piece[i].row;
    return 0;
}

const void *keel_on_device_base(const keel_on_device *x, int input, int slot, int64_t first)
{
    return x->inputs + slot * x->inputs_bytes + x->input_at[input] - first * x->input_bytes[input];
}

/* ---- which calls ----------------------------------------------------------------------------- */

static bool ends_behind(const keel_program *p, int worker, int segment)
{
    const keel_on_device *x = p->workspace[worker].on_device;
    const bool stays = p->checks_there && p->lanes->n_worker == 1;
    if (segment + 1 == p->schedule.n_segment) return true;
    for (int k = 0; k < x->n_bucket && !stays; k++)
        if (x->bucket[k].segment == segment) return true;
    return !keel_on_device_records_stay(p, worker, segment);
}

/* Returns their number. at: NULL, or room for them. */
static int find(const keel_program *p, const keel_bound *b, int worker, keel_stretch *at)
{
    const keel_bound_workspace *w = &b->workspace[worker];
    int n = 0, first = -1;
    for (int g = 0; g < p->schedule.n_segment; g++)
        for (int i = w->first[g]; i <= w->first[g + 1]; i++) {
            const bool is_end = i == w->first[g + 1];
            const keel_bound_call *c = &w->call[i];
            const bool goes_on = is_end ? !ends_behind(p, worker, g)
                                        : !c->staged && keel_on_device_folds_alone(p, c, worker);
            if (goes_on && first < 0 && !is_end) first = i;
            if (goes_on || first < 0) continue;
            if (i - first >= LEAST && at) at[n] = (keel_stretch){ .first = first, .end = i };
            n += i - first >= LEAST;
            first = -1;
        }
    return n;
}

static void free_one(keel_stretches *s)
{
    keel_free(s->at);
    keel_free(s->base);
    keel_free(s);
}

static keel_status create(const keel_program *p, const keel_bound *b, int worker)
{
    const int n = find(p, b, worker, NULL);
    keel_stretches *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    s->at = keel_calloc((size_t)n + 1, sizeof *s->at);
    s->base = keel_calloc((size_t)(KEEL_ROW_SLOTS * p->graph->n_input), sizeof *s->base);
    if (!s->at || !s->base) {
        free_one(s);
        return KEEL_ENOMEM;
    }
    s->n = find(p, b, worker, s->at);
    b->workspace[worker].stretches = s;
    return KEEL_OK;
}

/* ---- their graphs ---------------------------------------------------------------------------- */

static void forget_slot(keel_device *d, keel_stretches *s, int slot)
{
    for (int k = 0; k < s->n; k++) {
        if (s->at[k].graph[slot]) d->type->forget(d, s->at[k].graph[slot]);
        s->at[k].graph[slot] = NULL;
    }
    s->made[slot] = false;
}

void keel_on_device_forget(const keel_program *p, const keel_bound *b)
{
    for (int w = 0; b->workspace && w < p->lanes->n_worker; w++) {
        keel_stretches *s = b->workspace[w].stretches;
        if (!s) continue;
        for (int slot = 0; slot < KEEL_ROW_SLOTS; slot++) forget_slot(p->lanes->device[w], s, slot);
        free_one(s);
        b->workspace[w].stretches = NULL;
    }
}

/* The calls of a stretch, and what is behind the segments within it. */
static keel_status enqueue(const keel_program *p, const keel_bound *b, int worker,
                           const keel_stretch *s)
{
    const keel_bound_workspace *w = &b->workspace[worker];
    int g = 0;
    while (w->first[g + 1] <= s->first) g++;
    for (int i = s->first; i < s->end; i++) {
        for (; w->first[g + 1] <= i; g++) KEEL_TRY(keel_on_device_send_records(p, b, worker, g));
        KEEL_TRY(keel_on_device_call(p, b, &w->call[i], worker));
    }
    return keel_call_status_take();
}

static keel_status capture_one(const keel_program *p, const keel_bound *b, int worker,
                               keel_stretch *s, int slot)
{
    keel_device *d = p->workspace[worker].on_device->device;
    keel_failure first = { 0 };
    KEEL_TRY(d->type->capture_begin(d));
    const keel_status calls = enqueue(p, b, worker, s);
    if (calls < 0) keel_failure_take(&first, calls);
    const keel_status end = d->type->capture_end(d, &s->graph[slot]);
    return first.status < 0 ? keel_failure_raise(&first) : end;
}

/* base [n_input]: the places of the inputs. */
static keel_status capture(const keel_program *p, const keel_bound *b, int worker, int slot,
                           const void *const *base)
{
    const keel_bound_workspace *w = &b->workspace[worker];
    const size_t n = (size_t)p->graph->n_input;
    keel_device *d = p->workspace[worker].on_device->device;
    if (!w->stretches) KEEL_TRY(create(p, b, worker));
    keel_stretches *s = w->stretches;
    forget_slot(d, s, slot);
    keel_bound_patch(w, base);
    for (int k = 0; k < s->n; k++) KEEL_TRY(capture_one(p, b, worker, &s->at[k], slot));
    if (n) memcpy(s->base + (size_t)slot * n, base, n * sizeof *base);
    s->made[slot] = true;
    return KEEL_OK;
}

/* A device without graphs of these calls, or without memory for them, makes them one by one, and
 * says so. Those of the calls that it has are of no use. */
static keel_status without(keel_device *d, const keel_bound_workspace *w, keel_status s)
{
    if (s != KEEL_EUNSUP) return s;
    for (int slot = 0; slot < KEEL_ROW_SLOTS && w->stretches; slot++)
        forget_slot(d, w->stretches, slot);
    const size_t at = strlen(d->lacks);
    snprintf(d->lacks + at, sizeof d->lacks - at,
             "%s%s is given each call by itself, which is slower for small ones, since %s",
             at ? "; " : "", d->name, keel_error());
    d->no_graphs = true;
    return KEEL_OK;
}

static bool has_graphs(const keel_program *p, int worker)
{
    const keel_on_device *x = p->workspace[worker].on_device;
    return x && x->device->type->replay && !x->device->no_graphs && !p->options.no_graphs;
}

static keel_status ready(keel_program *p, const keel_bound *b, int worker)
{
    keel_on_device *x = p->workspace[worker].on_device;
    keel_status s = KEEL_OK;
    for (int slot = 0; slot < KEEL_ROW_SLOTS && s >= 0 && has_graphs(p, worker); slot++) {
        const keel_stretches *made = b->workspace[worker].stretches;
        if (b->workspace[worker].rows == 0 || (made && made->made[slot])) continue;
        for (int i = 0; i < p->graph->n_input; i++)
            x->base[i] = x->input_at[i] < 0 || p->absent[i]
                             ? NULL
                             : keel_on_device_base(x, i, slot, first_row(b, worker));
        s = without(x->device, &b->workspace[worker], capture(p, b, worker, slot, x->base));
    }
    return s;
}

keel_status keel_program_ready(keel_program *p)
{
    for (int i = 0; i < p->n_bound; i++)
        for (int w = 0; w < p->lanes->n_worker; w++) KEEL_TRY(ready(p, p->bound[i], w));
    return KEEL_OK;
}

/* ---- in a run -------------------------------------------------------------------------------- */

keel_status keel_on_device_choose(keel_program *p, const keel_bound *b, int worker)
{
    const keel_bound_workspace *w = &b->workspace[worker];
    keel_on_device *x = p->workspace[worker].on_device;
    const size_t n = (size_t)p->graph->n_input;
    x->replayed = NULL;
    x->stretch = 0;
    /* a timer asks for each call */
    if (p->timing || w->rows == 0 || !has_graphs(p, worker)) return KEEL_OK;
    const keel_stretches *s = w->stretches;
    const size_t at = (size_t)x->slot * n;
    if (!s || !s->made[x->slot] || (n && memcmp(s->base + at, x->base, n * sizeof *x->base)))
        KEEL_TRY(without(x->device, w, capture(p, b, worker, x->slot, x->base)));
    if (w->stretches && w->stretches->made[x->slot]) x->replayed = w->stretches;
    return KEEL_OK;
}

bool keel_on_device_replays(keel_on_device *x, int call)
{
    keel_stretches *s = x->replayed;
    if (!s) return false;
    while (x->stretch < s->n && s->at[x->stretch].end <= call) x->stretch++;
    if (x->stretch == s->n || call < s->at[x->stretch].first) return false;
    if (call == s->at[x->stretch].first)
        x->device->type->replay(x->device, s->at[x->stretch].graph[x->slot]);
    return true;
}

bool keel_on_device_within(const keel_on_device *x, int call)
{
    const keel_stretches *s = x->replayed;
    if (!s || x->stretch == s->n) return false;
    return s->at[x->stretch].first < call && call < s->at[x->stretch].end;
}
