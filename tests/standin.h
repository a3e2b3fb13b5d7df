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
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "standin_calls.h"

/* ---- captured and replayed ------------------------------------------------------------------- */

static keel_status standin_capture_begin(keel_device *d)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "another");
    if (s->refused < 0) return keel_fail(s->refused, "%s: the test says so", d->name);
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
    .orthogonalize = standin_orthogonalize, .factor = standin_factor, .project = standin_project,  \
    .check = standin_check, .record = standin_record, .wait = standin_wait,                        \
    .passed = standin_passed, .capture_begin = standin_capture_begin,                              \
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
