/* A stand-in, as its parts know it: its streams, its memory, what it has counted, and what a test
 * wants of it. */
#ifndef KEEL_TESTS_STANDIN_DEVICE_H
#define KEEL_TESTS_STANDIN_DEVICE_H
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "device/device.h"
#include "standin_clocks.h"
#include "standin_sums.h"
#include "standin_tape.h"

enum { STANDIN_RING = 4096, STANDIN_BLOCKS = 4096, STANDIN_LOCKED = 512, STANDIN_ALIGN = 4096 };
static const int64_t STANDIN_SPACE = (int64_t)8 << 30; /* of addresses; memory only where used */

/* Streams meet at an event only, so each has a lock of its own. */
typedef struct standin_event {
    pthread_mutex_t lock;
    pthread_cond_t ran;
    int64_t recorded, done; /* by the host's count, and by the streams' */
} standin_event;

typedef struct standin_stream {
    struct standin *of;
    pthread_t thread;
    standin_work ring[STANDIN_RING];
    sem_t given, done;
    int head, tail, seen; /* given, taken, and known to be done */
    bool ends;
} standin_stream;

typedef struct standin {
    keel_device base;
    standin_tape *tape;           /* that is being made; NULL: calls are enqueued */
    int tapes, captures, replays; /* that are alive; that were made; so far */
    standin_tape *left;           /* those of a lost device, which it may still read */
    bool refuses_tapes;           /* capture_end has no graph of anything */
    char *foreign, *data;         /* the same memory: as the host sees it, and as it is */
    int64_t used;
    int n_block;
    struct standin_block {
        int64_t at, bytes;
        bool live;
        const char *what;
    } block[STANDIN_BLOCKS];
    standin_stream stream[KEEL_DEVICE_STREAMS];
    standin_event event[KEEL_DEVICE_EVENTS];
    pthread_mutex_t failing;
    keel_failure failure; /* what ran */
    keel_status refused;  /* of enqueueing, since the last finish */
    int calls;            /* so far, of any kind */
    int fail_at;          /* this one fails; 0: none */
    int hang_at;          /* this one of what is given to streams never ends; 0: none */
    int given;            /* to streams, so far */
    bool lost;            /* it did not end in time, so nothing is given any more */
    atomic_bool closes;   /* what still hangs ends, undone */
    int row_us;           /* each call takes so long for each of its rows */
    int allocations;      /* that are live, of the host's memory, too */
    bool joins_nobody;    /* it is in no group */
    bool locks_nothing;   /* there is no page-locked memory */
    struct {
        const char *at;
        int64_t bytes;
    } locked[STANDIN_LOCKED];
    int n_locked;
    clocks clocks;
    standin_group *group; /* that it has joined */
    int sums;             /* that it was asked for */
    int64_t out_bytes;    /* that were copied to the host */
    int moves;            /* that it has made, of a weight each */
    int checks, looks;    /* of gradients, and of weights, that it has made */
    int projections;      /* of weights, that it has made */
    int waits;            /* so far: of streams, and of the host */
    int ignore_at;        /* this one does not count as one; 0: none */
    const char *ignored;  /* what it was */
} standin;

static standin *standin_of(keel_device *d)
{
    return (standin *)d;
}

static bool standin_fails(standin *s)
{
    return ++s->calls == s->fail_at;
}

static void standin_not_captured(const standin *s, const char *what)
{
    if (!s->tape) return;
    fprintf(stderr, "%s: %s while a graph is captured\n", s->base.name, what);
    abort();
}

#endif
