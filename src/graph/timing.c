/* See timing.h. */
#include "graph/timing.h"
#include "base/memory.h"

keel_status keel_timing_create(keel_timing **out, int n_worker, int n_node, int64_t events)
{
    keel_timing *t = keel_calloc(1, sizeof *t);
    if (!t) return KEEL_ENOMEM;
    t->n_worker = n_worker;
    if (!(t->workspace = keel_aligned_calloc((size_t)n_worker, sizeof *t->workspace))) goto out;
    for (int w = 0; w < n_worker; w++) {
        keel_timing_workspace *s = &t->workspace[w];
        s->call_ns = keel_calloc((size_t)n_node * KEEL_PASS_COUNT, sizeof *s->call_ns);
        if (!s->call_ns) goto out;
        if (events && !(s->event = keel_calloc((size_t)events, sizeof *s->event))) goto out;
        s->capacity = events;
    }
    *out = t;
    return KEEL_OK;
out:
    keel_timing_destroy(t);
    return KEEL_ENOMEM;
}

void keel_timing_destroy(keel_timing *t)
{
    if (!t) return;
    for (int w = 0; t->workspace && w < t->n_worker; w++) {
        keel_free(t->workspace[w].call_ns);
        keel_free(t->workspace[w].event);
    }
    keel_free(t->workspace);
    keel_free(t);
}

static void keep(keel_timing_workspace *s, int64_t begin, int64_t end, int node, int what)
{
    if (s->n_event < s->capacity)
        s->event[s->n_event++] =
            (keel_event){ .begin = begin, .end = end, .node = node, .what = what };
    else
        s->lost += s->capacity > 0;
}

int64_t keel_timing_call(keel_timing *t, int worker, int node, keel_pass pass, int64_t begin)
{
    keel_timing_workspace *s = &t->workspace[worker];
    const int64_t now = keel_clock_ns();
    s->call_ns[(int64_t)node * KEEL_PASS_COUNT + pass] += now - begin;
    keep(s, begin, now, node, pass);
    return now;
}

int64_t keel_timing_phase(keel_timing *t, int worker, keel_phase phase, int64_t begin)
{
    keel_timing_workspace *s = &t->workspace[worker];
    const int64_t now = keel_clock_ns();
    s->phase_ns[phase] += now - begin;
    keep(s, begin, now, -1, phase);
    return now;
}
