/* See window.h. A ring of elements: those from `out` to `in` were given to the pool, several in a
 * task where they are made or supplied so quickly that the lock of the pool would cost more. The
 * window is as deep as two tasks for each thread, and no deeper than the account allows; one
 * element is always made, so that a limit that is too small slows down and does not stop. */
#include "data/window.h"
#include "base/clock.h"
#include "base/memory.h"
#include "data/pool.h"
#include "data/stage.h"
#include "data/trail.h"
#include <stddef.h>

typedef struct entry {
    keel_task task; /* first, so that a task is its entry; it makes `count` entries from here on */
    int count;
    double seconds, supplied; /* that it took; that its inputs took */
    keel_window *window;
    keel_position at;
    keel_element *in, *out;
    keel_status status;
    bool told; /* its failure was given */
    keel_failure failure;
    keel_spot place;    /* of the failure */
    keel_faults faults; /* rows that others stand for */
} entry;

struct keel_window {
    keel_iter *it;
    keel_supply *supply; /* NULL: elements of parent 0 */
    keel_make *make;
    uint64_t in, out;
    int n, depth;        /* of the ring; of what runs ahead, in tasks */
    int chunk;           /* elements of a task */
    double cost;         /* seconds of an element: of making or of supplying it, which is more */
    uint64_t ready;      /* those before this one are made */
    bool ended;          /* the supply has ended, or failed */
    keel_failure failed; /* that of the supply, which comes after what was made before */
    keel_spot failed_at;
    entry at[];
};

/* A task has few elements if they are dear or large, so that all threads have some. */
enum { CHUNK = 32 };
#define CHUNK_SECONDS 50e-6
#define CHUNK_BYTES   (1 << 18)

static void make_one(entry *e, keel_scratch *scratch)
{
    keel_window *w = e->window;
    keel_trail *t = scratch->trail;
    t->failed_in = NULL;
    t->faults.n = e->faults.n = 0;
    const keel_trail_mark before = keel_trail_enter(t, w->it->dataset->origin, e->at.index);
    e->status = w->make(w->it, e->at, e->in, &e->out, scratch);
    keel_trail_leave(t, before);
    if (e->status >= 0) e->status = keel_faults_move(&e->faults, &t->faults);
    if (e->status >= 0) return;
    keel_failure_take(&e->failure, e->status);
    e->place = e->in ? e->in->place : (keel_spot){ .from = w->it->dataset, .at = e->at };
    e->place.failed_in = t->failed_in ? t->failed_in : w->it->dataset->origin;
    e->place.failed_row = t->failed_row;
    keel_element_release(e->out);
    e->out = NULL;
}

static void run(keel_task *task, keel_scratch *scratch)
{
    entry *const e = (entry *)(void *)task;
    const keel_window *w = e->window;
    const double begin = keel_seconds();
    const int first = (int)(e - w->at);
    for (int i = 0; i < e->count; i++) make_one(e->window->at + (first + i) % w->n, scratch);
    e->seconds = keel_seconds() - begin;
}

keel_status keel_window_create(keel_window **out, keel_iter *it, keel_supply *supply,
                               keel_make *make, bool alone)
{
    const int threads = keel_pool_threads(it->run->pool);
    const int depth = alone || it->exact ? 1 : 2 * threads + 1, n = depth > 1 ? depth * CHUNK : 1;
    keel_window *w = keel_calloc(1, sizeof *w + (size_t)n * sizeof *w->at);
    if (!w) return KEEL_ENOMEM;
    w->depth = depth;
    w->chunk = 1;
    w->it = it;
    w->supply = supply;
    w->make = make;
    w->n = n;
    *out = w;
    return KEEL_OK;
}

static bool may_read_ahead(const keel_window *w)
{
    const keel_account *a = &w->it->run->account;
    if (w->in == w->out) return true;
    return w->in - w->out < (uint64_t)(w->depth * w->chunk) &&
           (!a->limit || atomic_load(&a->used) < a->limit);
}

static keel_status next_input(keel_window *w, entry *e)
{
    if (w->supply) return w->supply(w->it, &e->at, &e->in);
    e->at = w->it->at;
    e->at.index = (int64_t)w->in; /* as many were given before */
    return keel_iter_next(w->it->parent[0], &e->in);
}

/* Take one input for the task of `first`; false: there is none. */
static bool take(keel_window *w, entry *first)
{
    entry *e = &w->at[w->in % (uint64_t)w->n];
    e->window = w;
    e->task.run = run;
    e->in = e->out = NULL;
    e->told = false;
    const keel_status s = next_input(w, e);
    if (s == KEEL_OK) {
        w->in++;
        first->count++;
        return true;
    }
    w->ended = true;
    if (s < 0) keel_failure_take(&w->failed, s);
    w->failed_at = w->it->run->place;
    return false;
}

static void fill(keel_window *w)
{
    const uint64_t most = (uint64_t)(w->depth * w->chunk), chunk = (uint64_t)w->chunk;
    if (w->in > w->out && w->in - w->out + chunk > most) return; /* whole tasks */
    while (!w->ended && may_read_ahead(w)) {
        entry *const first = &w->at[w->in % (uint64_t)w->n];
        const double begin = keel_seconds();
        first->count = 0;
        while (first->count < w->chunk && may_read_ahead(w) && take(w, first)) continue;
        first->supplied = keel_seconds() - begin;
        if (first->count) keel_pool_add(w->it->run->pool, &first->task);
    }
}

/* Of the first entry of a task. How many the next ones have changes nothing but the time. */
static void wait_for(keel_window *w, entry *e)
{
    const double share = 0.25;
    keel_pool_wait(w->it->run->pool, &e->task);
    w->ready = w->out + (uint64_t)e->count;
    const double each = (e->seconds > e->supplied ? e->seconds : e->supplied) / e->count;
    w->cost += (w->cost > 0 ? share : 1) * (each - w->cost);
    if (w->depth == 1) return;
    const double fits = CHUNK_SECONDS / (w->cost + 1e-9);
    w->chunk = fits < 1 ? 1 : fits < CHUNK ? (int)fits : CHUNK;
    while (e->out && w->chunk > 1 && (size_t)w->chunk * e->out->n_bytes > CHUNK_BYTES)
        w->chunk /= 2;
}

/* Go on to the next entry. */
static void leave(keel_window *w)
{
    entry *e = &w->at[w->out++ % (uint64_t)w->n];
    keel_element_release(e->in);
    e->in = NULL;
}

/* Of elements in their order: what others stand for is charged to the budget. */
static void charge(const keel_window *w, entry *e)
{
    e->status = keel_ledger_charge(&w->it->run->ledger, &e->faults);
    if (e->status >= 0) return;
    keel_failure_take(&e->failure, e->status);
    e->place = e->faults.at[0].place;
    keel_element_release(e->out);
    e->out = NULL;
}

keel_status keel_window_next(keel_window *w, keel_element **out)
{
    fill(w);
    if (w->in == w->out) {
        if (w->failed.status >= 0) return KEEL_END;
        const keel_failure failed = w->failed;
        w->failed = (keel_failure){ 0 };
        w->ended = false; /* asked again, the supply goes on or fails again */
        w->it->run->place = w->failed_at;
        return keel_failure_raise(&failed);
    }
    entry *e = &w->at[w->out % (uint64_t)w->n];
    if (e->told) { /* try it again: the cause may have gone */
        e->told = false;
        e->count = 1;
        keel_pool_add(w->it->run->pool, &e->task);
        keel_pool_wait(w->it->run->pool, &e->task);
    } else if (w->out >= w->ready) {
        wait_for(w, e);
    }
    if (e->status >= 0) charge(w, e);
    if (e->status < 0) {
        e->told = true;
        w->it->run->place = e->place;
        return keel_failure_raise(&e->failure);
    }
    *out = e->out;
    e->out = NULL;
    leave(w);
    return KEEL_OK;
}

bool keel_window_pass(keel_window *w)
{
    const bool told = w->in > w->out && w->at[w->out % (uint64_t)w->n].told;
    if (told) leave(w);
    return told;
}

void keel_window_destroy(keel_window *w)
{
    if (!w) return;
    for (; w->out < w->in; w->out++) {
        entry *e = &w->at[w->out % (uint64_t)w->n];
        if (w->out >= w->ready) wait_for(w, e);
        keel_element_release(e->in);
        keel_element_release(e->out);
    }
    for (int i = 0; i < w->n; i++) keel_faults_free(&w->at[i].faults);
    keel_free(w);
}
