/* See window.h. A ring of elements: those from `out` to `in` were given to the pool, several in a
 * task where they are made or supplied so quickly that the lock of the pool would cost more. The
 * window is as deep as two tasks for each thread that works, and no deeper than the account allows.
 * If there is no room for the element that is next, all that was made ahead is let go, and it is
 * made here. */
#include "data/window.h"
#include "base/clock.h"
#include "base/memory.h"
#include "data/chunk.h"
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
    bool told;             /* its failure was given */
    bool dropped;          /* it was made, and let go */
    keel_failure *failure; /* with room for a text once the entry has failed; NULL: not yet */
    keel_spot place;       /* of the failure */
    keel_faults faults;    /* rows that others stand for */
} entry;

struct keel_window {
    keel_iter *it;
    keel_supply *supply; /* NULL: elements of parent 0 */
    keel_make *make;
    uint64_t in, out;
    uint64_t given, ready; /* those before are in tasks of the pool; are made */
    int n;                 /* of the ring */
    int chunk;             /* elements of a task */
    double cost;           /* seconds of an element: of making or of supplying it, which is more */
    bool alone;
    int64_t largest; /* bytes of an element made, and of what it is made of */
    keel_scratch scratch;
    bool makes;          /* with that scratch, now */
    keel_window *next;   /* of the run */
    bool ended;          /* the supply has ended, or failed */
    keel_failure failed; /* that of the supply, which comes after what was made before */
    keel_spot failed_at;
    entry at[];
};

/* A task has few elements if they are dear or large. */
enum { CHUNK = 8 };
#define CHUNK_SECONDS 50e-6
#define CHUNK_BYTES   (1 << 18)

/* The text of a failure is a kilobyte, so only entries that have failed have room for one. */
static void fail(entry *e)
{
    if (!e->failure) e->failure = keel_calloc(1, sizeof *e->failure);
    if (e->failure) keel_failure_take(e->failure, e->status);
}

static keel_status raise_failure(const entry *e)
{
    return e->failure
               ? keel_failure_raise(e->failure)
               : keel_fail(e->status, "an element failed, and there is no memory to say why");
}

static void make_one(entry *e, keel_scratch *scratch)
{
    keel_window *w = e->window;
    keel_trail *t = scratch->trail;
    t->failed_in = NULL;
    t->faults.n = e->faults.n = 0;
    const keel_data_origin *shown = keel_trail_show(t, w->it->shown);
    const keel_trail_mark before = keel_trail_enter(t, w->it->dataset->origin, e->at.index);
    e->status = w->make(w->it, e->at, e->in, &e->out, scratch);
    keel_trail_show(t, shown);
    keel_trail_leave(t, before);
    if (e->status >= 0) e->status = keel_faults_move(&e->faults, &t->faults);
    if (e->status >= 0) return;
    fail(e);
    e->place = e->in ? e->in->place : (keel_spot){ .from = w->it->dataset, .at = e->at };
    e->place.failed_in = t->failed_in ? t->failed_in : w->it->dataset->origin;
    e->place.failed_row = t->failed_row;
    keel_element_release(e->out);
    e->out = NULL;
}

/* A window of one element has nothing to choose by its time. */
static double now(const keel_window *w)
{
    return w->n > 1 ? keel_seconds() : 0;
}

static void run(keel_task *task, keel_scratch *scratch)
{
    entry *const e = (entry *)(void *)task;
    keel_window *w = e->window;
    const double begin = now(w);
    const int first = (int)(e - w->at);
    const keel_probe_mark m = keel_probe_resume(scratch->probe, w->it->dataset->origin);
    for (int i = 0; i < e->count; i++) make_one(w->at + (first + i) % w->n, scratch);
    keel_probe_leave(scratch->probe, m);
    e->seconds = now(w) - begin;
}

static int64_t bytes_of(const keel_element *e)
{
    return e ? (int64_t)e->n_bytes : 0;
}

keel_status keel_window_create(keel_window **out, keel_iter *it, keel_supply *supply,
                               keel_make *make, bool alone)
{
    const int threads = keel_pool_threads(it->run->pool);
    const int n = alone || it->exact || !threads ? 1 : (2 * threads + 1) * CHUNK;
    keel_window *w = keel_calloc(1, sizeof *w + (size_t)n * sizeof *w->at);
    if (!w) return KEEL_ENOMEM;
    w->it = it;
    w->supply = supply;
    w->make = make;
    w->n = n;
    w->chunk = 1;
    w->alone = alone;
    w->largest = keel_dataset_element_size(it->dataset);
    const int64_t from = supply ? 0 : keel_dataset_element_size(it->applied->parent[0]);
    if (__builtin_add_overflow(w->largest, from, &w->largest)) w->largest = INT64_MAX;
    w->scratch = keel_run_scratch(it->run);
    w->next = it->run->window;
    it->run->window = w;
    *out = w;
    return KEEL_OK;
}

/* The elements that may be ahead. */
static int64_t depth(const keel_window *w)
{
    const int64_t deep = (2 * keel_pool_used(w->it->run->pool) + 1) * (int64_t)w->chunk;
    return deep < w->n ? deep : w->n;
}

/* What was made ahead can be let go, but not what it is made of: so the account keeps its reserve,
 * with which all stages together can go on. */
static bool may_read_ahead(const keel_window *w)
{
    const int64_t ahead = (int64_t)(w->in - w->out);
    const keel_account *a = w->it->run->account;
    int64_t needs;
    if (ahead == 0) return true;
    if (ahead >= depth(w)) return false;
    if (!a || !a->limit) return true;
    return keel_mul_i64(ahead + 1, w->largest, &needs) && keel_account_room(a) - a->reserve > needs;
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
    e->task.work = w->it->work;
    e->in = e->out = NULL;
    e->told = e->dropped = false;
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
    const int64_t ahead = (int64_t)(w->in - w->out);
    if (ahead && ahead + w->chunk > depth(w)) return; /* whole tasks */
    while (!w->ended && may_read_ahead(w)) {
        entry *const first = &w->at[w->in % (uint64_t)w->n];
        const double begin = now(w);
        first->count = 0;
        while (first->count < w->chunk && may_read_ahead(w) && take(w, first)) continue;
        first->supplied = now(w) - begin;
        if (first->count) keel_pool_add(w->it->run->pool, &first->task);
        w->given = w->in;
    }
}

/* Wait for the task that makes the first entry that is not ready. */
static void wait_for_next(keel_window *w)
{
    entry *e = &w->at[w->ready % (uint64_t)w->n];
    keel_pool_wait(w->it->run->pool, &e->task, w->it->dataset->origin);
    w->ready += (uint64_t)e->count;
    if (w->n == 1) return;
    const double each = (e->seconds > e->supplied ? e->seconds : e->supplied) / e->count;
    w->chunk = (int)keel_chunk(&w->cost, each, CHUNK_SECONDS, CHUNK);
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
    fail(e);
    e->place = e->faults.at[0].place;
    keel_element_release(e->out);
    e->out = NULL;
}

/* There was no room: the thread that needs the element makes it, and lets go of all else that was
 * read ahead where that helps. */
static void make_here(keel_window *w, entry *e)
{
    keel_scratch_free(&w->scratch);
    w->makes = true;
    make_one(e, &w->scratch);
    w->makes = false;
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
    if (e->told || e->dropped) { /* try it again: the cause may have gone */
        e->told = e->dropped = false;
        e->count = 1;
        keel_pool_add(w->it->run->pool, &e->task);
        keel_pool_wait(w->it->run->pool, &e->task, w->it->dataset->origin);
    } else if (w->out == w->ready) {
        wait_for_next(w);
    }
    const keel_account *a = w->it->run->account;
    if (e->status == KEEL_ENOMEM && a && a->limit) make_here(w, e);
    if (e->status >= 0) charge(w, e);
    if (e->status < 0) {
        e->told = true;
        w->it->run->place = e->place;
        return raise_failure(e);
    }
    *out = e->out;
    if (bytes_of(e->out) + bytes_of(e->in) > w->largest)
        w->largest = bytes_of(e->out) + bytes_of(e->in);
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

void keel_window_let_go(keel_window *w)
{
    while (!w->alone && w->ready < w->given) wait_for_next(w);
    for (uint64_t i = w->ready; i-- > w->out && !w->alone;) {
        entry *e = &w->at[i % (uint64_t)w->n];
        if (e->told || e->dropped) continue;
        e->dropped = e->out != NULL;
        keel_element_release(e->out);
        e->out = NULL;
    }
    if (!w->makes) keel_scratch_free(&w->scratch); /* else this is called from there */
}

void keel_run_let_go(void *of)
{
    keel_run *run = of;
    for (keel_window *w = run->window; w; w = w->next) keel_window_let_go(w);
    keel_pool_let_go(run->pool);
}

void keel_window_destroy(keel_window *w)
{
    if (!w) return;
    for (keel_window **p = &w->it->run->window; *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            break;
        }
    while (w->ready < w->given) wait_for_next(w);
    for (; w->out < w->in; w->out++) {
        entry *e = &w->at[w->out % (uint64_t)w->n];
        keel_element_release(e->in);
        keel_element_release(e->out);
    }
    for (int i = 0; i < w->n; i++) {
        keel_faults_free(&w->at[i].faults);
        keel_free(w->at[i].failure);
    }
    keel_scratch_free(&w->scratch);
    keel_free(w);
}
