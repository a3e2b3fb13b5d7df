/* The time of a step on some network, while a process makes the step without one: it computes,
 * starts exchanges, looks whether they are complete, and waits for them. Nothing here reads a
 * clock, so the same calls give the same times. */
#ifndef KEEL_SIMULATE_TIMELINE_H
#define KEEL_SIMULATE_TIMELINE_H
#include "base/error.h"
#include "keel/simulate.h"
#include <stdbool.h>

/* Bytes and messages of one exchange of one process. */
typedef struct keel_load {
    double out, in;             /* bytes to and from other machines */
    double local_out, local_in; /* to and from processes of this machine */
    int messages;               /* sent and received, of any length */
    bool asks;                  /* one to or from another machine is longer than `eager` */
} keel_load;

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

typedef struct keel_timeline {
    const keel_network *network;
    const keel_noticed *noticed;
    int together;
    /* Seconds since the step began. */
    double now, computed;  /* computed: those of them in which the process computed */
    double moves, out, in; /* the link has carried bytes without a pause; each way until */
    double first[KEEL_EXCHANGES_MAX]; /* [number]: bytes move from then on */
    double end[KEEL_EXCHANGES_MAX];
    double copies[KEEL_EXCHANGES_MAX], own[KEEL_EXCHANGES_MAX]; /* of its time: bytes of its
                                                                   machine, and from others */
} keel_timeline;

/* A step. The first three members are given; nothing is allocated. */
void keel_timeline_begin(keel_timeline *t);
/* All after the process has computed for so many seconds of the step. */
void keel_timeline_start(keel_timeline *t, double computed, int number, const keel_load *load);
bool keel_timeline_look(keel_timeline *t, double computed, int number); /* whether it is complete */
void keel_timeline_wait(keel_timeline *t, double computed, int number); /* until it is */
double keel_timeline_end(keel_timeline *t, double computed);            /* seconds of the step */

/* KEEL_EARG: a number of the network makes no sense. */
keel_status keel_network_check(const keel_network *n);

#endif
