/* What a process does in a step, as it was recorded: it computes, starts exchanges, and waits for
 * them. Replayed with a network, this gives the time of the step. Nothing here reads a clock, so
 * equal recordings give equal times. */
#ifndef KEEL_SIMULATE_TIMELINE_H
#define KEEL_SIMULATE_TIMELINE_H
#include "base/error.h"
#include "keel/simulate.h"
#include <stdbool.h>
#include <stdint.h>

/* Bytes and messages of one exchange of one process. */
typedef struct keel_load {
    double out, in;             /* bytes to and from other machines */
    double local_out, local_in; /* to and from processes of this machine */
    int messages;               /* sent and received, of any length */
    bool asks;                  /* one to or from another machine is longer than `eager` */
} keel_load;

typedef struct keel_event_of_step {
    double at; /* seconds of compute since the step began */
    int number;
    bool starts; /* else it waits here */
    keel_load load;
} keel_event_of_step;

typedef struct keel_timeline {
    int n, capacity;
    keel_event_of_step *event; /* [n] in order */
    double compute;            /* seconds of the whole step */
} keel_timeline;

/* When a process that waits sees that the first bytes of an exchange have come: it polls, then
 * sleeps between polls. From then on it polls, so that it sees the last bytes at once. Points that
 * do not fall; between two of them a line, beyond the last the same delay. n 0: at once. */
enum { KEEL_NOTICED_MAX = 32 };
typedef struct keel_noticed {
    int n;
    double after[KEEL_NOTICED_MAX], seen[KEEL_NOTICED_MAX]; /* seconds since the wait began */
} keel_noticed;

double keel_noticed_after(const keel_noticed *x, double seconds);

/* Seconds from the start of an exchange to when all has come. together: processes that share the
 * link of their machine. */
double keel_load_seconds(const keel_network *n, const keel_load *x, int together);
/* Seconds that the process itself copies bytes to and from others of its machine. It does so where
 * it looks after the exchange, so they are hidden behind nothing. */
double keel_load_copies(const keel_network *n, const keel_load *x);

typedef struct keel_replayed {
    double step, exposed; /* seconds; exposed is the part of the step that is not compute */
} keel_replayed;
keel_replayed keel_timeline_replay(const keel_timeline *t, const keel_network *n,
                                   const keel_noticed *noticed, int together);

keel_status keel_timeline_add(keel_timeline *t, const keel_event_of_step *e);
void keel_timeline_clear(keel_timeline *t); /* keeps the memory */
void keel_timeline_free(keel_timeline *t);

/* KEEL_EARG: a number of the network makes no sense. */
keel_status keel_network_check(const keel_network *n);

#endif
