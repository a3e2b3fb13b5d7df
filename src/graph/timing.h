/* Where the time of steps goes: two clock readings for each call, written to memory that is
 * reserved before step 1. When it is off, it costs one test of a pointer for each segment. */
#ifndef KEEL_GRAPH_TIMING_H
#define KEEL_GRAPH_TIMING_H
#include "base/clock.h"
#include "ops/op.h"

typedef enum keel_phase { /* what a worker does besides its calls */
                          KEEL_PHASE_MERGE,
                          KEEL_PHASE_WAIT, /* for other workers */
                          KEEL_PHASE_REDUCE,
                          KEEL_PHASE_UPDATE, /* optimizer, state, packed copies */
                          KEEL_PHASE_READ,   /* the worker's rows of the batch */
                          KEEL_PHASE_COUNT
} keel_phase;

typedef struct keel_event { /* for a trace */
    int64_t begin, end;     /* keel_clock_ns */
    int32_t node;           /* -1: a phase */
    int32_t what;           /* keel_pass, or keel_phase */
} keel_event;

typedef struct keel_timing_workspace {
    int64_t *call_ns; /* [n_node][KEEL_PASS_COUNT] */
    int64_t phase_ns[KEEL_PHASE_COUNT];
    keel_event *event;
    int64_t n_event, capacity; /* events that came when the list was full */
    int64_t lost;
    char pad[64];
} keel_timing_workspace;

typedef struct keel_timing {
    int n_worker;
    keel_timing_workspace *workspace;
} keel_timing;

/* events: how many a worker can keep for a trace; 0: only sums. */
keel_status keel_timing_create(keel_timing **out, int n_worker, int n_node, int64_t events);
void keel_timing_destroy(keel_timing *t);

/* Notes [begin, now) for the worker; returns now. */
int64_t keel_timing_call(keel_timing *t, int worker, int node, keel_pass pass, int64_t begin);
int64_t keel_timing_phase(keel_timing *t, int worker, keel_phase phase, int64_t begin);

#endif
