/* Devices for tests, on any machine: threads with memory of their own, one for each stream. Its
 * pointers are foreign: the host that touches one of them crashes. Work runs later, in the order in
 * which it was enqueued on its stream, and any call can be made to fail.
 *
 * A wait that is missing is reported when the work is enqueued, by the names of both works and of
 * the memory (standin_clocks.h). To show that, any wait can be left out of the clocks; it is kept
 * all the same, so that nothing else goes wrong. ThreadSanitizer sees missing waits, too, where the
 * timing shows them, since the host and the streams learn only in waits that something has run.
 *
 * What never ends counts as lost after the device's patience; it ends, undone, when the device is
 * closed.
 *
 * Graphs are tapes (standin_tape.h): what is captured is kept, with all that it touches, and each
 * replay enqueues and checks it again. What no graph may have ends the program. */
#ifndef KEEL_TESTS_STANDIN_H
#define KEEL_TESTS_STANDIN_H
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "base/round.h"
#include "device/device.h"
#include "graph/bind.h"
#include "graph/gradients.h"
#include "graph/moments.h"
#include "ops/ranges.h"
#include "optimizers/move.h"
#include "standin_clocks.h"

enum { STANDIN_RING = 4096, STANDIN_BLOCKS = 4096, STANDIN_LOCKED = 512, STANDIN_ALIGN = 4096 };
static const int64_t STANDIN_SPACE = (int64_t)8 << 30; /* of addresses; memory only where used */

typedef enum standin_work_kind {
    STANDIN_COPY,
    STANDIN_CLEAR,
    STANDIN_ADD,
    STANDIN_CALL,
    STANDIN_FOLD,
    STANDIN_MOVE,
    STANDIN_MEASURE,
    STANDIN_PROJECT,
    STANDIN_CHECK,
    STANDIN_SUM,
    STANDIN_RECORD,
    STANDIN_WAIT
} standin_work_kind;

typedef struct standin_work {
    standin_work_kind kind;
    bool kept;  /* a tape has call and fold */
    bool hangs; /* it never ends */
    void *to;
    const void *from;
    int64_t n;
    keel_dtype real;
    keel_run run;
    keel_call *call;
    keel_device_fold *fold;
    keel_device_move *move;
    keel_device_measure *measure;
    keel_device_project *project;
    keel_device_check *check;
    struct standin_event *event;
    struct standin_group *group;
    int rank;
} standin_work;

#include "standin_tape.h"
#include "standin_sums.h"

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
    int checks;           /* of gradients, that it has made */
    int projections;      /* of weights, that it has made */
    int waits;            /* so far: of streams, and of the host */
    int ignore_at;        /* this one does not count as one; 0: none */
    const char *ignored;  /* what it was */
} standin;

static standin *standin_of(keel_device *d)
{
    return (standin *)d;
}

/* ---- memory ---------------------------------------------------------------------------------- */

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

static keel_status standin_allocate(keel_device *d, int64_t bytes, const char *what, void **out)
{
    standin *s = standin_of(d);
    const int64_t held = bytes > 0 ? keel_round_up(bytes, STANDIN_ALIGN) : STANDIN_ALIGN;
    standin_not_captured(s, "memory is allocated");
    if (standin_fails(s) || s->n_block == STANDIN_BLOCKS ||
        held > STANDIN_SPACE - STANDIN_ALIGN - s->used)
        return keel_fail(KEEL_ENOMEM, "%s has no room for %lld bytes", d->name, (long long)bytes);
    s->block[s->n_block++] = (struct standin_block){ s->used, bytes, true, what };
    *out = s->foreign + s->used;
    s->used += held + STANDIN_ALIGN;
    s->allocations++;
    return KEEL_OK;
}

static struct standin_block *standin_block_of(standin *s, const void *foreign)
{
    const int64_t at = (const char *)foreign - s->foreign;
    for (int i = 0; i < s->n_block; i++)
        if (s->block[i].live && at >= s->block[i].at && at <= s->block[i].at + s->block[i].bytes)
            return &s->block[i];
    fprintf(stderr, "%s: %p is not memory of it\n", s->base.name, foreign);
    abort();
}

static keel_status standin_allocate_host(keel_device *d, int64_t bytes, void **out)
{
    standin *s = standin_of(d);
    if (s->locks_nothing) return keel_fail(KEEL_ENOMEM, "%s: nothing can be locked", d->name);
    char *at = aligned_alloc(64, (size_t)keel_round_up(bytes, 64) + 64);
    if (!at) abort();
    memset(at, 0, (size_t)bytes + 64);
    *out = at + 64;
    ((int64_t *)*out)[-1] = bytes; /* in front of it */
    if (s->n_locked == STANDIN_LOCKED) abort();
    s->locked[s->n_locked].at = *out;
    s->locked[s->n_locked++].bytes = bytes;
    s->allocations++;
    return KEEL_OK;
}

/* Where `bytes` at a foreign pointer are. */
static void *standin_at(standin *s, const void *foreign, int64_t bytes)
{
    const struct standin_block *b = standin_block_of(s, foreign);
    const int64_t at = (const char *)foreign - s->foreign;
    if (bytes > b->at + b->bytes - at) {
        fprintf(stderr, "%s: %lld bytes at %p reach beyond their block\n", s->base.name,
                (long long)bytes, foreign);
        abort();
    }
    return s->data + at;
}

/* ---- what work touches ----------------------------------------------------------------------- */

static void standin_touch(standin *s, int party, const char *who, const void *at, int64_t bytes,
                          bool writes)
{
    char what[80] = "memory of the host";
    if (bytes == 0) return;
    if (s->tape) {
        standin_tape_touch(s->tape, who, at, bytes, writes);
        return;
    }
    const char *foreign = at;
    if (foreign >= s->foreign && foreign < s->foreign + STANDIN_SPACE) {
        const struct standin_block *b = standin_block_of(s, at);
        snprintf(what, sizeof what, "%s + %lld", b->what,
                 (long long)(foreign - s->foreign - b->at));
    }
    clocks_touch(&s->clocks, party, who, at, bytes, writes, what);
}

static void standin_host_touches(keel_device *d, const void *host, int64_t bytes, bool writes)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "work of the host");
    s->clocks.now[CLOCKS_HOST][CLOCKS_HOST]++;
    standin_touch(s, CLOCKS_HOST, "the host", host, bytes, writes);
}

static void standin_release(keel_device *d, void *at)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "memory is released");
    struct standin_block *b = standin_block_of(s, at);
    if (s->lost) { /* it may still use it */
        s->allocations--;
        return;
    }
    standin_touch(s, CLOCKS_HOST, "releasing", at, b->bytes, true);
    clocks_forget(&s->clocks, s->foreign + b->at, b->bytes + 1);
    madvise(s->data + b->at, (size_t)keel_round_up(b->bytes, STANDIN_ALIGN), MADV_DONTNEED);
    b->live = false;
    s->allocations--;
}

static void standin_release_host(keel_device *d, void *at)
{
    standin *s = standin_of(d);
    const int64_t bytes = ((int64_t *)at)[-1];
    if (s->lost) { /* until it closes, when what hangs is not done */
        s->allocations--;
        return;
    }
    standin_touch(s, CLOCKS_HOST, "releasing", at, bytes, true);
    clocks_forget(&s->clocks, at, bytes);
    for (int i = 0; i < s->n_locked; i++)
        if (s->locked[i].at == at) s->locked[i] = s->locked[--s->n_locked];
    free((char *)at - 64);
    s->allocations--;
}

/* Whether this wait is left out of the clocks. */
static bool standin_ignores(standin *s, const char *what)
{
    if (++s->waits != s->ignore_at) return false;
    s->ignored = what;
    return true;
}

/* ---- work ------------------------------------------------------------------------------------ */

static void standin_set(standin_event *e, int64_t number)
{
    pthread_mutex_lock(&e->lock);
    e->done = number;
    pthread_cond_broadcast(&e->ran);
    pthread_mutex_unlock(&e->lock);
}

static void standin_await(standin_event *e, int64_t number)
{
    pthread_mutex_lock(&e->lock);
    while (e->done < number) pthread_cond_wait(&e->ran, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

static void standin_push(const keel_device_fold *w)
{
    const keel_fold f = { .length = w->length,
                          .combine = w->moments ? keel_moments_combine : NULL,
                          .upward = w->upward };
    int depth = w->depth;
    for (int i = 0; i < w->rows; i++, depth++) {
        const int row = w->upward ? i : w->rows - 1 - i;
        keel_records_push(w->node, &f, w->stack, depth, w->closes[i], w->leaf + row * w->length);
        depth -= w->closes[i];
    }
}

/* False: the device is closed, and it is not done. */
static bool standin_may_run(standin *s, const standin_work *w)
{
    while (w->hangs && !atomic_load(&s->closes)) usleep(1000);
    return !atomic_load(&s->closes);
}

static void standin_do(standin *s, const standin_work *w)
{
    const bool undone = !standin_may_run(s, w);
    switch (undone ? STANDIN_RECORD : w->kind) {
    case STANDIN_COPY:
        memcpy(w->to, w->from, (size_t)w->n);
        break;
    case STANDIN_CLEAR:
        memset(w->to, 0, (size_t)w->n);
        break;
    case STANDIN_ADD:
        keel_gradients_add(w->real, &(keel_addition){ w->to, w->from, w->n });
        break;
    case STANDIN_CALL:
        w->run(w->call);
        if (s->row_us) usleep((useconds_t)(s->row_us * w->call->rows));
        break;
    case STANDIN_FOLD:
        standin_push(w->fold);
        break;
    case STANDIN_MOVE:
        keel_move(w->move);
        break;
    case STANDIN_MEASURE:
        keel_measure(w->measure);
        break;
    case STANDIN_PROJECT:
        keel_project(&w->project->how, &w->project->shape, w->project->real, w->project->w);
        break;
    case STANDIN_CHECK:
        keel_check(w->check);
        break;
    case STANDIN_SUM:
        standin_sum_now(w->group, w->rank, w->to, w->n, w->real);
        break;
    case STANDIN_RECORD:
        if (w->event) standin_set(w->event, w->n);
        break;
    case STANDIN_WAIT:
        standin_await(w->event, w->n);
        break;
    }
    const keel_status failed = keel_call_status_take();
    if (failed < 0) {
        pthread_mutex_lock(&s->failing);
        if (s->failure.status >= 0) keel_failure_take(&s->failure, failed);
        pthread_mutex_unlock(&s->failing);
    }
    if (w->kept) return;
    free(w->call);
    free(w->fold);
    free(w->move);
    free(w->measure);
    free(w->project);
    free(w->check);
}

static void *standin_live(void *context)
{
    standin_stream *x = context;
    for (;;) {
        sem_wait(&x->given);
        if (x->ends) return NULL;
        standin_do(x->of, &x->ring[x->tail++ % STANDIN_RING]);
        sem_post(&x->done);
    }
}

/* False: it has not ended in time. */
static bool standin_done(standin_stream *x)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const double end = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + x->of->base.patience;
    t.tv_sec = (time_t)end;
    t.tv_nsec = (long)(1e9 * (end - (double)t.tv_sec));
    if (sem_timedwait(&x->done, &t) == 0) return true;
    x->of->lost = true;
    return false;
}

static bool standin_empty(standin_stream *x)
{
    for (; x->seen < x->head; x->seen++)
        if (!standin_done(x)) return false;
    return true;
}

static keel_status standin_is_lost(const standin *s)
{
    return keel_fail(KEEL_EDEVICE, "%s has not answered for %g seconds", s->base.name,
                     s->base.patience);
}

static keel_status standin_finish(keel_device *d)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "a wait of the host");
    const keel_status refused = s->refused;
    const bool ignores = standin_ignores(s, "the host for all streams");
    if (s->lost) return standin_is_lost(s);
    for (int i = 0; i < KEEL_DEVICE_STREAMS; i++) {
        if (!standin_empty(&s->stream[i])) return standin_is_lost(s);
        if (!ignores) clocks_join(s->clocks.now[CLOCKS_HOST], s->clocks.now[i]);
    }
    keel_failure ran = s->failure;
    s->failure = (keel_failure){ 0 };
    s->refused = KEEL_OK;
    if (ran.status < 0) return keel_failure_raise(&ran);
    return refused < 0 ? keel_fail(refused, "%s: the test says so", d->name) : KEEL_OK;
}

static keel_status standin_reach(keel_device *d, keel_device_stream stream)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "a wait of the host");
    if (!s->lost && stream == KEEL_COPY_OUT_STREAM && s->group &&
        !standin_empty(&s->stream[stream]) && standin_empty(&s->stream[KEEL_COMPUTE_STREAM])) {
        standin_give_up(&s->group->base); /* the others do not come */
        s->lost = !standin_empty(&s->stream[stream]);
        KEEL_TRY(standin_finish(d));
        return keel_fail(KEEL_EREMOTE, "%s has waited for the gradients of other devices",
                         s->base.name);
    }
    if (s->lost || !standin_empty(&s->stream[stream])) return standin_is_lost(s);
    pthread_mutex_lock(&s->failing);
    const bool failed = s->failure.status < 0 || s->refused < 0;
    pthread_mutex_unlock(&s->failing);
    if (failed) return standin_finish(d);
    if (!standin_ignores(s, stream == KEEL_COMPUTE_STREAM   ? "the host for the compute stream"
                            : stream == KEEL_COPY_IN_STREAM ? "the host for copies in"
                                                            : "the host for copies out"))
        clocks_join(s->clocks.now[CLOCKS_HOST], s->clocks.now[stream]);
    return KEEL_OK;
}

/* False: nothing is enqueued. */
static bool standin_takes(standin *s)
{
    if (s->refused >= 0 && standin_fails(s)) s->refused = KEEL_EDEVICE;
    return s->refused >= 0 && !s->lost;
}

/* Something new comes behind all that the host knows. */
static void standin_enqueue(standin *s, int stream)
{
    if (stream != KEEL_COMPUTE_STREAM) standin_not_captured(s, "a call for another stream");
    if (s->tape)
        standin_tape_enqueue(s->tape);
    else
        clocks_enqueue(&s->clocks, stream);
}

static void standin_give(standin *s, int stream, standin_work w)
{
    standin_stream *x = &s->stream[stream];
    if (s->tape) {
        standin_tape_give(s->tape, w);
        return;
    }
    w.hangs = ++s->given == s->hang_at;
    for (; x->head - x->seen >= STANDIN_RING; x->seen++)
        if (!standin_done(x)) return;
    x->ring[x->head++ % STANDIN_RING] = w;
    sem_post(&x->given);
}

/* A graph copies from and to page-locked memory only. */
static void standin_captures_copy(const standin *s, const void *host)
{
    for (int i = 0; s->tape && i < s->n_locked; i++)
        if ((const char *)host >= s->locked[i].at &&
            (const char *)host < s->locked[i].at + s->locked[i].bytes)
            return;
    standin_not_captured(s, "a copy of memory that is not page-locked");
}

static void standin_copy_in(keel_device *d, keel_device_stream stream, void *to,
                            const void *from_host, int64_t bytes)
{
    standin *s = standin_of(d);
    if (!standin_takes(s)) return;
    standin_captures_copy(s, from_host);
    standin_enqueue(s, (int)stream);
    standin_touch(s, (int)stream, "a copy in", from_host, bytes, false);
    standin_touch(s, (int)stream, "a copy in", to, bytes, true);
    standin_give(
        s, (int)stream,
        (standin_work){
            .kind = STANDIN_COPY, .to = standin_at(s, to, bytes), .from = from_host, .n = bytes });
}

static void standin_copy_out(keel_device *d, keel_device_stream stream, void *to_host,
                             const void *from, int64_t bytes)
{
    standin *s = standin_of(d);
    if (!standin_takes(s)) return;
    standin_captures_copy(s, to_host);
    standin_enqueue(s, (int)stream);
    s->out_bytes += bytes;
    standin_touch(s, (int)stream, "a copy out", from, bytes, false);
    standin_touch(s, (int)stream, "a copy out", to_host, bytes, true);
    standin_give(
        s, (int)stream,
        (standin_work){
            .kind = STANDIN_COPY, .to = to_host, .from = standin_at(s, from, bytes), .n = bytes });
}

static void standin_clear(keel_device *d, void *at, int64_t bytes)
{
    standin *s = standin_of(d);
    if (!standin_takes(s)) return;
    standin_enqueue(s, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "clearing", at, bytes, true);
    standin_give(
        s, KEEL_COMPUTE_STREAM,
        (standin_work){ .kind = STANDIN_CLEAR, .to = standin_at(s, at, bytes), .n = bytes });
}

static void standin_add(keel_device *d, keel_dtype real, void *to, const void *from, int64_t count)
{
    standin *s = standin_of(d);
    const int64_t bytes = count * (int64_t)keel_dtype_size(real);
    if (!standin_takes(s)) return;
    standin_enqueue(s, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "adding", from, bytes, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "adding", to, bytes, true);
    standin_give(s, KEEL_COMPUTE_STREAM,
                 (standin_work){ .kind = STANDIN_ADD,
                                 .to = standin_at(s, to, bytes),
                                 .from = standin_at(s, from, bytes),
                                 .n = count,
                                 .real = real });
}

static void standin_sum(keel_device *d, keel_device_group *g, int rank, keel_dtype real,
                        const keel_device_range *range, int n)
{
    standin *s = standin_of(d);
    for (int i = 0; i < n; i++) {
        const int64_t bytes = range[i].count * (int64_t)keel_dtype_size(real);
        if (!standin_takes(s)) return;
        standin_enqueue(s, KEEL_COPY_OUT_STREAM);
        standin_touch(s, KEEL_COPY_OUT_STREAM, "a sum", range[i].at, bytes, true);
        s->sums++;
        standin_give(s, KEEL_COPY_OUT_STREAM,
                     (standin_work){ .kind = STANDIN_SUM,
                                     .to = standin_at(s, range[i].at, bytes),
                                     .n = range[i].count,
                                     .real = real,
                                     .group = (standin_group *)g,
                                     .rank = rank });
    }
}

static keel_status standin_join(keel_device *const *device, int n, keel_device_group **out)
{
    standin_group *g;
    if (standin_of(device[0])->joins_nobody)
        return keel_fail(KEEL_EUNSUP, "these stand-ins add nothing up");
    g = standin_group_make(device[0]->type, n);
    for (int i = 0; i < n; i++) standin_of(device[i])->group = g;
    *out = &g->base;
    return KEEL_OK;
}

static void standin_leave(keel_device_group *g)
{
    standin_group_free((standin_group *)g);
}

static void standin_copy(keel_device *d, void *to, const void *from, int64_t bytes)
{
    standin *s = standin_of(d);
    if (!standin_takes(s)) return;
    standin_enqueue(s, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "a copy", from, bytes, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "a copy", to, bytes, true);
    standin_give(s, KEEL_COMPUTE_STREAM,
                 (standin_work){ .kind = STANDIN_COPY,
                                 .to = standin_at(s, to, bytes),
                                 .from = standin_at(s, from, bytes),
                                 .n = bytes });
}

/* Writes the stack from the lowest node on that its pushes complete. */
static void standin_fold(keel_device *d, const keel_device_fold *f)
{
    standin *s = standin_of(d);
    const int64_t record = (f->length + 1) * (int64_t)sizeof(double);
    const int64_t leaves = f->rows * f->length * (int64_t)sizeof(double);
    int depth = f->depth, least = f->depth, most = f->depth;
    if (!standin_takes(s)) return;
    for (int i = 0; i < f->rows; i++, depth++) {
        most = depth > most ? depth : most;
        depth -= f->closes[i];
        least = depth < least ? depth : least;
    }
    double *low = f->stack + least * (f->length + 1);
    const int64_t bytes = (most + 1 - least) * record;
    keel_device_fold *own = malloc(sizeof *own);
    if (!own) abort();
    *own = *f;
    standin_enqueue(s, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "folding", f->leaf, leaves, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "folding", low, bytes, true);
    own->leaf = standin_at(s, f->leaf, leaves);
    own->stack = (double *)standin_at(s, low, bytes) - least * (f->length + 1);
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_FOLD, .fold = own });
}

static void standin_move_one(standin *s, const keel_device_move *m)
{
    const int64_t bytes = m->count * (int64_t)keel_dtype_size(m->real);
    if (!standin_takes(s)) return;
    keel_device_move *own = malloc(sizeof *own);
    if (!own) abort();
    *own = *m;
    s->moves++;
    clocks_enqueue(&s->clocks, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "moving", m->g, bytes, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "moving", m->w, bytes, true);
    own->g = standin_at(s, m->g, bytes);
    own->w = standin_at(s, m->w, bytes);
    for (int k = 0; k < keel_rule_slots(m->rule); k++) {
        standin_touch(s, KEEL_COMPUTE_STREAM, "moving", m->slot[k], bytes, true);
        own->slot[k] = standin_at(s, m->slot[k], bytes);
    }
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_MOVE, .move = own });
}

static void standin_move(keel_device *d, const keel_device_move *m, int n)
{
    for (int i = 0; i < n; i++) standin_move_one(standin_of(d), &m[i]);
}

static void standin_measure(keel_device *d, const keel_device_measure *m)
{
    standin *s = standin_of(d);
    const int64_t bytes = m->count * (int64_t)keel_dtype_size(m->real);
    const int64_t sums = (m->count + m->tile - 1) / m->tile * 2 * (int64_t)sizeof(double);
    if (!standin_takes(s)) return;
    keel_device_measure *own = malloc(sizeof *own);
    if (!own) abort();
    *own = *m;
    clocks_enqueue(&s->clocks, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "measuring", m->w, bytes, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "measuring", m->sums, sums, true);
    own->w = standin_at(s, m->w, bytes);
    own->sums = standin_at(s, m->sums, sums);
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_MEASURE, .measure = own });
}

static void standin_project(keel_device *d, const keel_device_project *p)
{
    standin *s = standin_of(d);
    const int64_t bytes = keel_shape_count(&p->shape) * (int64_t)keel_dtype_size(p->real);
    if (!standin_takes(s)) return;
    keel_device_project *own = malloc(sizeof *own);
    if (!own) abort();
    *own = *p;
    s->projections++;
    clocks_enqueue(&s->clocks, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "constraining", p->w, bytes, true);
    own->w = standin_at(s, p->w, bytes);
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_PROJECT, .project = own });
}

static void standin_check(keel_device *d, const keel_device_check *c)
{
    standin *s = standin_of(d);
    const int64_t element = (int64_t)keel_dtype_size(c->real);
    const int64_t tiles = c->n_tile * (int64_t)sizeof *c->tile;
    const int64_t votes = c->n_tile * (int64_t)sizeof *c->vote;
    if (!standin_takes(s)) return;
    keel_device_check *own = malloc(sizeof *own);
    if (!own) abort();
    *own = *c;
    s->checks++;
    clocks_enqueue(&s->clocks, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "checking", c->tile, tiles, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "checking", c->vote, votes, true);
    own->tile = standin_at(s, c->tile, tiles);
    own->vote = standin_at(s, c->vote, votes);
    standin_touch(s, KEEL_COMPUTE_STREAM, "checking", (char *)c->g + c->first * element,
                  (c->end - c->first) * element, true);
    own->g = standin_at(s, c->g, c->end * element);
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_CHECK, .check = own });
}

static void standin_record(keel_device *d, keel_device_stream stream, int event)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "an event is recorded");
    if (!standin_takes(s)) return;
    standin_enqueue(s, (int)stream);
    memcpy(s->clocks.event[event], s->clocks.now[stream], sizeof s->clocks.event[event]);
    standin_give(s, (int)stream,
                 (standin_work){ .kind = STANDIN_RECORD,
                                 .event = &s->event[event],
                                 .n = ++s->event[event].recorded });
}

static void standin_wait(keel_device *d, keel_device_stream stream, int event)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "a wait of a stream");
    if (!standin_takes(s)) return;
    standin_enqueue(s, (int)stream);
    if (!standin_ignores(s, stream == KEEL_COMPUTE_STREAM   ? "the compute stream"
                            : stream == KEEL_COPY_IN_STREAM ? "copies in"
                                                            : "copies out"))
        clocks_join(s->clocks.now[stream], s->clocks.event[event]);
    standin_give(s, (int)stream,
                 (standin_work){ .kind = STANDIN_WAIT,
                                 .event = &s->event[event],
                                 .n = s->event[event].recorded });
}

/* ---- references ------------------------------------------------------------------------------ */

static void *standin_pointers(void **next, const void *from, int n)
{
    void **to = *next;
    if (n > 0 && from) memcpy(to, from, (size_t)n * sizeof *to);
    *next = to + n;
    return to;
}

static const char *const standin_pass[KEEL_PASS_COUNT] = {
    [KEEL_FORWARD] = "forward",   [KEEL_PARTIAL] = "records",
    [KEEL_BACKWARD] = "backward", [KEEL_PARTIAL_BACKWARD] = "records of backward",
    [KEEL_WEIGHTS] = "weights",
};

/* A copy of the call, whose pointers are where the memory is: with its arrays one block. */
static keel_call *standin_call(standin *s, const keel_call *c, int pass, int64_t scratch)
{
    const keel_node *n = c->node;
    char who[CLOCKS_WHO];
    const int pointers = 2 * (n->n_in + n->n_out + n->n_weight) + n->n_saved;
    keel_call *x = calloc(1, sizeof *x + (size_t)pointers * sizeof(void *));
    keel_range *range = calloc((size_t)keel_ranges_most(n), sizeof *range);
    if (!x || !range) abort();
    void *next = x + 1;
    *x = *c;
    x->in = standin_pointers(&next, c->in, n->n_in);
    x->in_grad = standin_pointers(&next, c->in_grad, n->n_in);
    x->out = standin_pointers(&next, c->out, n->n_out);
    x->out_grad = standin_pointers(&next, c->out_grad, n->n_out);
    x->saved = standin_pointers(&next, c->saved, n->n_saved);
    x->weight = standin_pointers(&next, c->weight, n->n_weight);
    x->weight_grad =
        standin_pointers(&next, c->weight_grad, pass == KEEL_WEIGHTS ? n->n_weight : 0);
    const int n_range = keel_ranges_of(x, (keel_pass)pass, range);
    snprintf(who, sizeof who, "%.22s %s", n->layer, standin_pass[pass]);
    for (int writes = 0; writes < 2; writes++)
        for (int i = 0; i < n_range; i++)
            if (writes ? range[i].writes : range[i].reads)
                standin_touch(s, KEEL_COMPUTE_STREAM, who, *range[i].at, range[i].bytes, writes);
    if (scratch > 0) standin_touch(s, KEEL_COMPUTE_STREAM, who, c->scratch, scratch, true);
    for (int i = 0; i < n_range; i++) *range[i].at = standin_at(s, *range[i].at, range[i].bytes);
    x->scratch = scratch > 0 ? standin_at(s, c->scratch, scratch) : NULL;
    free(range);
    return x;
}

static void standin_launch(keel_device *d, keel_run run, const keel_call *call, int pass,
                           int64_t scratch)
{
    standin *s = standin_of(d);
    if (!standin_takes(s)) return;
    standin_enqueue(s, KEEL_COMPUTE_STREAM);
    standin_give(s, KEEL_COMPUTE_STREAM,
                 (standin_work){ .kind = STANDIN_CALL,
                                 .run = run,
                                 .call = standin_call(s, call, pass, scratch) });
}

/* ---- captured and replayed ------------------------------------------------------------------- */

static keel_status standin_capture_begin(keel_device *d)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "another");
    if (standin_fails(s)) return keel_fail(KEEL_EDEVICE, "%s: the test says so", d->name);
    s->tape = calloc(1, sizeof *s->tape);
    if (!s->tape) abort();
    return KEEL_OK;
}

/* What failed meanwhile is of the capture. */
static keel_status standin_capture_end(keel_device *d, void **graph)
{
    standin *s = standin_of(d);
    standin_tape *made = s->tape;
    const keel_status refused = s->refused;
    s->tape = NULL;
    s->refused = KEEL_OK;
    if (refused < 0 || s->refuses_tapes) {
        standin_tape_free(made);
        return refused < 0 ? keel_fail(refused, "%s: the test says so", d->name)
                           : keel_fail(KEEL_EUNSUP, "the test refuses graphs");
    }
    s->tapes++;
    s->captures++;
    *graph = made;
    return KEEL_OK;
}

static void standin_replay(keel_device *d, void *graph)
{
    standin *s = standin_of(d);
    const standin_tape *tape = graph;
    standin_not_captured(s, "a replay");
    if (!standin_takes(s)) return;
    s->replays++;
    for (int i = 0; i < tape->n; i++) {
        const standin_note *x = &tape->note[i];
        if (x->kind == STANDIN_NOTE_ENQUEUE)
            standin_enqueue(s, KEEL_COMPUTE_STREAM);
        else if (x->kind == STANDIN_NOTE_TOUCH)
            standin_touch(s, KEEL_COMPUTE_STREAM, x->who, x->at, x->bytes, x->writes);
        else
            standin_give(s, KEEL_COMPUTE_STREAM, x->work);
    }
}

static void standin_forget(keel_device *d, void *graph)
{
    standin *s = standin_of(d);
    s->tapes--;
    standin_tape *tape = graph;
    if (!s->lost) {
        standin_tape_free(tape);
        return;
    }
    tape->next = s->left;
    s->left = tape;
}

/* ---- opened and closed ----------------------------------------------------------------------- */

static void standin_close(keel_device *d)
{
    standin *s = standin_of(d);
    standin_finish(d);
    atomic_store(&s->closes, s->lost);
    for (int i = 0; s->lost && i < KEEL_DEVICE_STREAMS; i++)
        for (; s->stream[i].seen < s->stream[i].head; s->stream[i].seen++)
            sem_wait(&s->stream[i].done);
    for (int i = 0; i < s->n_locked; i++) free((char *)(uintptr_t)s->locked[i].at - 64);
    while (s->left) {
        standin_tape *tape = s->left;
        s->left = tape->next;
        standin_tape_free(tape);
    }
    for (int i = 0; i < KEEL_DEVICE_STREAMS; i++) {
        standin_stream *x = &s->stream[i];
        x->ends = true;
        sem_post(&x->given);
        pthread_join(x->thread, NULL);
        sem_destroy(&x->given);
        sem_destroy(&x->done);
    }
    for (int i = 0; i < KEEL_DEVICE_EVENTS; i++) {
        pthread_mutex_destroy(&s->event[i].lock);
        pthread_cond_destroy(&s->event[i].ran);
    }
    pthread_mutex_destroy(&s->failing);
    munmap(s->foreign, (size_t)STANDIN_SPACE);
    munmap(s->data, (size_t)STANDIN_SPACE);
    free(s->clocks.range);
    free(s);
}

#define STANDIN_CALLS                                                                              \
    .name = "standin", .allocate = standin_allocate, .release = standin_release,                   \
    .allocate_host = standin_allocate_host, .release_host = standin_release_host,                  \
    .copy_in = standin_copy_in, .copy_out = standin_copy_out, .clear = standin_clear,              \
    .add = standin_add, .copy = standin_copy, .move = standin_move, .measure = standin_measure,    \
    .project = standin_project, .check = standin_check, .record = standin_record,                  \
    .wait = standin_wait, .capture_begin = standin_capture_begin,                                  \
    .capture_end = standin_capture_end, .replay = standin_replay, .forget = standin_forget,        \
    .reach = standin_reach, .touches = standin_host_touches, .finish = standin_finish,             \
    .close = standin_close

/* Has the host run references on copies, as a GPU does. */
static const keel_device_type standin_stores = { STANDIN_CALLS };
/* Runs references itself. */
static const keel_device_type standin_runs = { STANDIN_CALLS, .fold = standin_fold,
                                               .launch = standin_launch };
/* The same, and adds up gradients with others. */
static const keel_device_type standin_sums = {
    STANDIN_CALLS,      .fold = standin_fold,       .launch = standin_launch, .join = standin_join,
    .sum = standin_sum, .give_up = standin_give_up, .leave = standin_leave
};

static keel_device *standin_open(const keel_device_type *type, int number)
{
    standin *s = calloc(1, sizeof *s);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (!s) abort();
    s->base.type = type;
    s->base.memory = STANDIN_SPACE;
    s->base.bucket_bytes = 256;
    s->base.patience = KEEL_DEVICE_PATIENCE;
    snprintf(s->base.name, sizeof s->base.name, "standin:%d", number);
    snprintf(s->base.kind, sizeof s->base.kind, "stand-in");
    s->foreign = mmap(NULL, (size_t)STANDIN_SPACE, PROT_NONE, flags, -1, 0);
    s->data = mmap(NULL, (size_t)STANDIN_SPACE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (s->foreign == MAP_FAILED || s->data == MAP_FAILED) abort();
    pthread_mutex_init(&s->failing, NULL);
    for (int i = 0; i < KEEL_DEVICE_EVENTS; i++) {
        pthread_mutex_init(&s->event[i].lock, NULL);
        pthread_cond_init(&s->event[i].ran, NULL);
    }
    for (int i = 0; i < KEEL_DEVICE_STREAMS; i++) {
        standin_stream *x = &s->stream[i];
        x->of = s;
        if (sem_init(&x->given, 0, 0) || sem_init(&x->done, 0, 0) ||
            pthread_create(&x->thread, NULL, standin_live, x))
            abort();
    }
    return &s->base;
}

#endif
