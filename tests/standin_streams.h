/* The streams of a stand-in: threads that do what was enqueued, each in its order, and the waits
 * for them. */
#ifndef KEEL_TESTS_STANDIN_STREAMS_H
#define KEEL_TESTS_STANDIN_STREAMS_H
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "factor.h"
#include "graph/gradients.h"
#include "graph/moments.h"
#include "optimizers/move.h"
#include "orthogonalize.h"
#include "standin_memory.h"

/* ---- work is done ---------------------------------------------------------------------------- */

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
                          .leaf = w->length,
                          .stride = w->length + 1,
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
    case STANDIN_ORTHOGONALIZE:
        orthogonalize_on_host(w->orthogonal);
        break;
    case STANDIN_FACTOR:
        factor_on_host(w->factored);
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
    free(w->orthogonal);
    free(w->factored);
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

/* ---- work is enqueued ------------------------------------------------------------------------ */

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

/* ---- the host waits -------------------------------------------------------------------------- */

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

/* Whether this wait is left out of the clocks. */
static bool standin_ignores(standin *s, const char *what)
{
    if (++s->waits != s->ignore_at) return false;
    s->ignored = what;
    return true;
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

#endif
