/* See window.h. A ring of portions: those from `out` to `in` were given to the pool. A portion has
 * several elements where they are made or supplied so quickly that handing them over one by one
 * would cost more. The window is two portions deep for each thread that works, and one that is
 * being given out; one for each thread where an element is so large that their memory leaves the
 * cache before it is used again, which costs more than a thread that waits now and then. It is no
 * deeper than the account allows; where it allows no more, a portion has fewer elements. If there
 * is no room for the element that is next, all that was made ahead is let go, and it is made here.
 */
#include "data/window.h"
#include "base/clock.h"
#include "base/memory.h"
#include "data/chunk.h"
#include "data/portion.h"
#include "data/stage.h"
#include <stddef.h>

struct keel_window {
    keel_iter *it;
    keel_supply *supply;     /* NULL: elements of parent 0 */
    uint64_t in, out, ready; /* portions given to the pool, given out, waited for */
    bool filling;            /* the one behind `in` */
    int n;                   /* of the ring */
    int chunk;               /* elements of a portion */
    int64_t taken, given;    /* elements of the supply; of these, given out */
    double cost; /* seconds of an element: of making or of supplying it, which is more */
    bool alone;
    int64_t largest; /* bytes of an element made, and of what it is made of */
    keel_scratch scratch;
    bool makes;          /* with that scratch, now */
    keel_window *next;   /* of the run */
    bool ended;          /* the supply has ended, or failed */
    keel_failure failed; /* that of the supply, which comes after what was made before */
    keel_spot failed_at;
    keel_portion ring[];
};

/* A portion has few elements if they are dear or large. */
enum { CHUNK = 32, LARGE = 4 << 20 /* bytes of an element */ };
#define CHUNK_SECONDS 50e-6
#define CHUNK_BYTES   (1 << 18)

static keel_portion *portion(keel_window *w, uint64_t i)
{
    return &w->ring[i % (uint64_t)w->n];
}

static int64_t bytes_of(const keel_element *e)
{
    return e ? (int64_t)e->n_bytes : 0;
}

keel_status keel_window_create(keel_window **out, keel_iter *it, keel_supply *supply,
                               keel_make *make, bool alone)
{
    const int threads = keel_pool_threads(it->run->pool);
    const int n = alone || it->exact || !threads ? 1 : 2 * threads + 1;
    keel_window *w = keel_calloc(1, sizeof *w + (size_t)n * sizeof *w->ring);
    if (!w) return KEEL_ENOMEM;
    w->it = it;
    w->supply = supply;
    w->n = n;
    w->chunk = 1;
    w->alone = alone;
    for (int i = 0; i < n; i++) keel_portion_init(&w->ring[i], it, make, n > 1);
    w->largest = keel_dataset_element_size(it->dataset);
    const int64_t from = supply ? 0 : keel_dataset_element_size(it->applied->parent[0]);
    if (__builtin_add_overflow(w->largest, from, &w->largest)) w->largest = INT64_MAX;
    w->scratch = keel_run_scratch(it->run);
    w->next = it->run->window;
    it->run->window = w;
    *out = w;
    return KEEL_OK;
}

/* ---- reading ahead --------------------------------------------------------------------------- */

/* A window of one portion has nothing to choose by its time. */
static double now(const keel_window *w)
{
    return w->n > 1 ? keel_seconds() : 0;
}

/* The portions that may be ahead. */
static uint64_t depth(const keel_window *w)
{
    const int used = keel_pool_used(w->it->run->pool);
    const int deep = (w->largest > LARGE ? 1 : 2) * used + 1;
    return (uint64_t)(deep < w->n ? deep : w->n);
}

static bool may_read_ahead(const keel_window *w)
{
    const int64_t ahead = w->taken - w->given;
    int64_t needs;
    if (!ahead) return true;
    if (!keel_mul_i64(ahead + 1, w->largest, &needs)) needs = INT64_MAX;
    return keel_run_has_room(w->it->run, needs);
}

static keel_status next_input(keel_window *w, keel_entry *e)
{
    if (w->supply) return w->supply(w->it, &e->at, &e->in);
    e->at = w->it->at;
    e->at.index = w->taken;
    return keel_iter_next(w->it->parent[0], &e->in);
}

/* Take one more input for a portion; false: there is none. */
static bool take(keel_window *w, keel_portion *p)
{
    keel_entry *e = &p->at[p->count];
    e->in = e->out = NULL;
    e->told = e->dropped = false;
    const keel_status s = next_input(w, e);
    if (s == KEEL_OK) {
        w->taken++;
        p->count++;
        return true;
    }
    w->ended = true;
    if (s < 0) keel_failure_take(&w->failed, s);
    w->failed_at = w->it->run->place;
    return false;
}

static void reserve(const keel_window *w, keel_portion *p)
{
    int room = 1;
    while (room < w->chunk) room *= 2;
    keel_portion_reserve(p, room);
}

static void fill(keel_window *w)
{
    while (!w->ended && w->in - w->out < depth(w) && may_read_ahead(w)) {
        keel_portion *p = portion(w, w->in);
        const double begin = now(w);
        reserve(w, p);
        const int most = w->chunk < p->room ? w->chunk : p->room;
        p->count = p->next = 0;
        w->filling = true;
        while (p->count < most && may_read_ahead(w) && take(w, p)) continue;
        w->filling = false;
        p->supplied = now(w) - begin;
        if (!p->count) break;
        keel_portion_start(p, 0, p->count);
        w->in++;
    }
}

/* Wait for the portion that is next. */
static void wait_for_next(keel_window *w)
{
    keel_portion *p = portion(w, w->ready++);
    keel_pool_wait(w->it->run->pool, &p->task, w->it->dataset->origin);
    if (w->n == 1) return;
    const double each = (p->seconds > p->supplied ? p->seconds : p->supplied) / p->count;
    const keel_element *first = p->at[0].out;
    w->chunk = (int)keel_chunk(&w->cost, each, CHUNK_SECONDS, CHUNK);
    while (first && w->chunk > 1 && (size_t)w->chunk * first->n_bytes > CHUNK_BYTES) w->chunk /= 2;
}

/* ---- giving out ------------------------------------------------------------------------------ */

/* Go on to the next element. */
static void leave(keel_window *w, keel_portion *p)
{
    keel_entry_leave(&p->at[p->next++]);
    w->given++;
    if (p->next == p->count) w->out++;
}

/* Of elements in their order: what others stand for is charged to the budget. */
static void charge(const keel_window *w, keel_entry *e)
{
    e->status = keel_ledger_charge(&w->it->run->ledger, &e->faults);
    if (e->status >= 0) return;
    keel_entry_fail(e, &e->faults.at[0].place);
    keel_entry_drop(e);
}

/* There was no room: the thread that needs the element makes it, and lets go of all else that was
 * read ahead where that helps. */
static void make_here(keel_window *w, keel_portion *p, keel_entry *e)
{
    keel_scratch_free(&w->scratch);
    w->makes = true;
    keel_entry_make(e, w->it, p->make, &w->scratch);
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
    if (w->out == w->ready) wait_for_next(w);
    keel_portion *p = portion(w, w->out);
    keel_entry *e = &p->at[p->next];
    if (e->told || e->dropped) { /* try it again: the cause may have gone */
        e->told = e->dropped = false;
        keel_portion_start(p, p->next, p->next + 1);
        keel_pool_wait(w->it->run->pool, &p->task, w->it->dataset->origin);
    }
    const keel_account *a = w->it->run->account;
    if (e->status == KEEL_ENOMEM && a && a->limit) make_here(w, p, e);
    if (e->status >= 0) charge(w, e);
    if (e->status < 0) {
        e->told = true;
        return keel_entry_raise(e, w->it);
    }
    *out = e->out;
    if (bytes_of(e->out) + bytes_of(e->in) > w->largest)
        w->largest = bytes_of(e->out) + bytes_of(e->in);
    e->out = NULL;
    leave(w, p);
    return KEEL_OK;
}

bool keel_window_pass(keel_window *w)
{
    keel_portion *p = portion(w, w->out);
    const bool told = w->in > w->out && p->at[p->next].told;
    if (told) leave(w, p);
    return told;
}

/* ---- letting go ------------------------------------------------------------------------------ */

static void drop_all(keel_portion *p)
{
    for (int i = p->next; i < p->count; i++) {
        keel_entry *e = &p->at[i];
        if (e->told || e->dropped) continue;
        e->dropped = e->out != NULL;
        keel_entry_drop(e);
    }
}

void keel_window_let_go(keel_window *w)
{
    if (!w->alone) {
        while (w->ready < w->in) wait_for_next(w);
        for (uint64_t i = w->out; i < w->in; i++) drop_all(portion(w, i));
        for (uint64_t i = w->in + w->filling; i < w->out + (uint64_t)w->n; i++)
            keel_portion_clear(portion(w, i)); /* those in no use */
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
    while (w->ready < w->in) wait_for_next(w);
    for (int i = 0; i < w->n; i++) keel_portion_clear(&w->ring[i]);
    keel_scratch_free(&w->scratch);
    keel_free(w);
}
