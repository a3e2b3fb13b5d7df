/* See window.h. A ring of tasks: those from `out` to `in` were given to the pool. The window is as
 * deep as two elements for each thread that works, and no deeper than the account allows. If there
 * is no room for the element that is next, all that was made ahead is let go, and it is made here.
 */
#include "data/window.h"
#include "base/memory.h"
#include "data/pool.h"
#include "data/stage.h"
#include "data/trail.h"
#include <stddef.h>

typedef struct entry {
    keel_task task; /* first, so that a task is its entry */
    keel_window *window;
    keel_position at;
    keel_element *in, *out;
    keel_status status;
    bool told;    /* its failure was given */
    bool dropped; /* it was made, and let go */
    keel_failure failure;
    keel_spot place;    /* of the failure */
    keel_faults faults; /* rows that others stand for */
} entry;

struct keel_window {
    keel_iter *it;
    keel_supply *supply; /* NULL: elements of parent 0 */
    keel_make *make;
    uint64_t in, out;
    int n;
    bool alone;
    int64_t largest; /* bytes of an element made, and of what it is made of */
    keel_scratch scratch;
    keel_window *next;   /* of the run */
    bool ended;          /* the supply has ended, or failed */
    keel_failure failed; /* that of the supply, which comes after what was made before */
    keel_spot failed_at;
    entry at[];
};

static void run(keel_task *task, keel_scratch *scratch)
{
    entry *e = (entry *)(void *)task;
    keel_window *w = e->window;
    keel_trail *t = scratch->trail;
    t->failed_in = NULL;
    t->faults.n = e->faults.n = 0;
    const keel_trail_mark before = keel_trail_enter(t, w->it->dataset->origin, e->at.index);
    const keel_probe_mark m = keel_probe_resume(scratch->probe, w->it->dataset->origin);
    e->status = w->make(w->it, e->at, e->in, &e->out, scratch);
    keel_probe_leave(scratch->probe, m);
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

static int64_t size_of(const keel_dataset *d)
{
    const keel_data_spec *spec = &d->origin->spec;
    const bool batches = spec->batched || (!d->origin->source->read && !spec->by_row);
    return keel_element_size(spec, batches ? spec->max_rows : 0);
}

static int64_t bytes_of(const keel_element *e)
{
    return e ? (int64_t)e->n_bytes : 0;
}

keel_status keel_window_create(keel_window **out, keel_iter *it, keel_supply *supply,
                               keel_make *make, bool alone)
{
    const int n = alone || it->exact ? 1 : 2 * keel_pool_threads(it->run->pool) + 1;
    keel_window *w = keel_calloc(1, sizeof *w + (size_t)n * sizeof *w->at);
    if (!w) return KEEL_ENOMEM;
    w->it = it;
    w->supply = supply;
    w->make = make;
    w->n = n;
    w->alone = alone;
    w->largest = size_of(it->dataset);
    if (!supply && __builtin_add_overflow(w->largest, size_of(it->applied->parent[0]), &w->largest))
        w->largest = INT64_MAX;
    w->scratch.account = it->run->account;
    w->scratch.probe = it->run->probe;
    w->scratch.trail = it->run->trail;
    w->next = it->run->window;
    it->run->window = w;
    *out = w;
    return KEEL_OK;
}

/* What was made ahead can be let go, but not what it is made of: so the account keeps its reserve,
 * with which all stages together can go on. */
static bool may_read_ahead(const keel_window *w)
{
    const int64_t ahead = (int64_t)(w->in - w->out);
    const int deep = w->alone ? 1 : 2 * keel_pool_used(w->it->run->pool) + 1;
    const keel_account *a = w->it->run->account;
    int64_t needs;
    if (ahead == 0) return true;
    if (ahead >= w->n || ahead >= deep) return false;
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

static void fill(keel_window *w)
{
    while (!w->ended && may_read_ahead(w)) {
        entry *e = &w->at[w->in % (uint64_t)w->n];
        e->window = w;
        e->task.run = run;
        e->task.work = w->it->work;
        e->in = e->out = NULL;
        e->told = e->dropped = false;
        const keel_status s = next_input(w, e);
        if (s != KEEL_OK) {
            w->ended = true;
            if (s < 0) keel_failure_take(&w->failed, s);
            w->failed_at = w->it->run->place;
            return;
        }
        w->in++;
        keel_pool_add(w->it->run->pool, &e->task);
    }
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
    if (e->told || e->dropped) { /* try it again: the cause may have gone */
        e->told = e->dropped = false;
        keel_pool_add(w->it->run->pool, &e->task);
    }
    keel_pool_wait(w->it->run->pool, &e->task, w->it->dataset->origin);
    const keel_account *a = w->it->run->account;
    if (e->status == KEEL_ENOMEM && a && a->limit) run(&e->task, &w->scratch);
    if (e->status >= 0) charge(w, e);
    if (e->status < 0) {
        e->told = true;
        w->it->run->place = e->place;
        return keel_failure_raise(&e->failure);
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
    for (uint64_t i = w->in; i-- > w->out && !w->alone;) {
        entry *e = &w->at[i % (uint64_t)w->n];
        if (e->told || e->dropped) continue;
        keel_pool_wait(w->it->run->pool, &e->task, w->it->dataset->origin);
        e->dropped = e->out != NULL;
        keel_element_release(e->out);
        e->out = NULL;
    }
    keel_scratch_free(&w->scratch);
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
    for (; w->out < w->in; w->out++) {
        entry *e = &w->at[w->out % (uint64_t)w->n];
        keel_pool_wait(w->it->run->pool, &e->task, NULL);
        keel_element_release(e->in);
        keel_element_release(e->out);
    }
    for (int i = 0; i < w->n; i++) keel_faults_free(&w->at[i].faults);
    keel_scratch_free(&w->scratch);
    keel_free(w);
}
