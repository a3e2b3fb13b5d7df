/* How many threads read and how many batches they may be ahead, found within 20 steps. It begins
 * with one thread. Where steps wait, the work of a step's rows and the time that a step computes
 * say how many threads are needed; where these do not help, the waits come from rows that take
 * longer than others, and one more batch ahead helps. Each change is judged by the time of the
 * steps that follow: threads that make them slower, since they take a core from training, are taken
 * back.
 *
 * The rows of a step never depend on any of this. */
#include "base/c_locale.h"
#include "data/feed_impl.h"
#include "data/flow.h"
#include "data/iter.h"
#include "data/pool.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    FIRST = 2,     /* steps before the first look: nothing was read ahead yet */
    WINDOW = 3,    /* steps of a look, */
    SETTLED = 20,  /* until so many steps: the end of a look, so that it decides */
    LATER = 50,    /* steps of a look from then on */
    FORGET = 1000, /* steps after which more threads are tried once more */
};
_Static_assert((SETTLED - FIRST) % WINDOW == 0, "the last short look ends when all is settled");
static const double WAITS = 0.005; /* share of the time: below it nothing is changed */
static const double IDLE = 0.001;  /* below it a thread may be too many */
static const double BETTER = 0.98; /* time of a step, against that before: a change that helps */
static const double SPARE = 1.15;  /* threads for so much more than the work */

static keel_pool *pool_of(const keel_feed *f)
{
    return f->flow ? keel_flow_run(f->flow)->pool : NULL;
}

static void use_threads(keel_feed *f, int n)
{
    if (pool_of(f)) {
        keel_pool_use(pool_of(f), n);
    } else {
        f->n_used = n;
        pthread_cond_broadcast(&f->work_ready); /* those that stop must not wait there */
        pthread_cond_broadcast(&f->idle);
    }
}

/* What was decided, for keel_tuner_say. */
static void say(keel_feed *f, const char *format, ...) KEEL_PRINTF(2, 3);
static void say(keel_feed *f, const char *format, ...)
{
    keel_tuner *t = &f->tuner;
    const keel_tuner_look *l = &t->look;
    const double step = l->seconds / (double)(l->steps ? l->steps : 1);
    va_list ap;
    if (!f->o.on_decision) return;
    int n = snprintf(t->line, sizeof t->line, "step %lld: ", (long long)t->steps);
    if (l->steps)
        n += keel_snprintf(
            t->line + n, sizeof t->line - (size_t)n,
            "a step takes %.3g ms, %.3g ms of it waiting, and its rows %.3g ms of threads: ",
            1e3 * step, 1e3 * l->waited / (double)l->steps, 1e3 * l->work / (double)l->steps);
    va_start(ap, format);
    keel_vsnprintf(t->line + n, sizeof t->line - (size_t)n, format, ap);
    va_end(ap);
}

void keel_tuner_begin(keel_feed *f)
{
    keel_tuner *t = &f->tuner;
    t->most_threads = f->flow ? keel_pool_threads(pool_of(f)) : f->n_threads;
    t->tunes_threads = !f->o.threads && t->most_threads > 1;
    /* rows in memory all take the same time, and nothing is allocated once such a feed is made */
    t->tunes_slots = !f->o.slots && f->n_threads > 0 && !f->source->in_memory;
    t->on = t->tunes_threads || t->tunes_slots;
    t->next = FIRST;
    t->ceiling = t->most_threads;
    if (t->tunes_threads) use_threads(f, 1);
}

static const char *threads(int n)
{
    return n == 1 ? "thread" : "threads";
}

static const char *batches(int n)
{
    return n == 1 ? "batch" : "batches";
}

static double per_step(const keel_tuner_look *l)
{
    return l->steps ? l->seconds / (double)l->steps : 0;
}

/* Judge the last change. True: it was taken back. */
static bool judge(keel_feed *f)
{
    keel_tuner *t = &f->tuner;
    const keel_tuner_move move = t->move;
    const double now = per_step(&t->look), before = per_step(&t->before);
    const int n = keel_feed_threads(f);
    t->move = KEEL_TUNER_NOTHING;
    if (move != KEEL_TUNER_THREADS) return false;
    const bool more = n > t->from;
    if (more ? now <= before * BETTER : now * BETTER <= before) return false;
    const double share = t->look.waited / t->look.seconds;
    if (more && now <= before && share > WAITS) return false; /* not yet enough, and no harm */
    use_threads(f, t->from);
    if (more) {
        t->ceiling = n - 1;
        t->forget = t->steps + FORGET;
    } else {
        t->floor = n + 1;
    }
    say(f, "%d %s instead of %d %s not make steps faster (%.3g ms before), so back to %d", n,
        threads(n), t->from, n == 1 ? "does" : "do", 1e3 * before, t->from);
    return true;
}

static bool holds_batches(const keel_feed *f)
{
    for (int i = 0; i < f->n_slots; i++)
        if (f->slots[i].state == KEEL_SLOT_HELD) return true;
    return false;
}

/* True if one more slot leaves the reserve, with which a row can always be read. Slots of rows that
 * have their own shapes grow. */
static bool has_room(const keel_feed *f)
{
    const keel_account *a = f->o.account;
    int64_t slot = keel_feed_slot_bytes(f);
    if (!a || !a->limit) return true;
    for (int i = 0; i < f->n_slots; i++)
        if (f->slots[i].taken_bytes > slot) slot = f->slots[i].taken_bytes;
    return keel_account_room(a) - a->reserve >= slot;
}

/* The batches that are there keep their slots, and get new places in the ring. */
static bool add_slot(keel_feed *f)
{
    keel_slot *old[KEEL_SLOTS_MAX];
    const int n = f->n_slots;
    if (n >= f->n_room || holds_batches(f) || !has_room(f)) return false;
    const uint64_t first = f->next_out;
    for (int i = 0; i < n; i++) old[i] = keel_feed_slot(f, first + (uint64_t)i);
    if (keel_feed_add_slot(f) < 0) return false;
    keel_slot *added = f->ring[n];
    for (int i = 0; i < n; i++) f->ring[(first + (uint64_t)i) % (uint64_t)(n + 1)] = old[i];
    f->ring[(first + (uint64_t)n) % (uint64_t)(n + 1)] = added;
    pthread_cond_signal(&f->work_ready);
    return true;
}

/* Threads that the rows of a step need while it computes. */
static int needed(const keel_tuner_look *l)
{
    const double computes = l->seconds - l->waited;
    if (!(computes > 0)) return 1 << 20;
    const double n = ceil(SPARE * l->work / computes);
    return n < 1 ? 1 : n > 1 << 20 ? 1 << 20 : (int)n;
}

static void change_threads(keel_feed *f, int to)
{
    keel_tuner *t = &f->tuner;
    const int n = keel_feed_threads(f);
    say(f, "%d %s instead of %d", to, threads(to), n);
    t->from = n;
    t->move = KEEL_TUNER_THREADS;
    t->before = t->look;
    use_threads(f, to);
}

static void decide(keel_feed *f)
{
    keel_tuner *t = &f->tuner;
    const keel_tuner_look *l = &t->look;
    const int n = keel_feed_threads(f);
    if (t->forget && t->steps >= t->forget) {
        t->ceiling = t->most_threads;
        t->forget = 0;
    }
    if (judge(f) || !(l->seconds > 0)) return;
    const double share = l->waited / l->seconds;
    const int need = needed(l);
    if (share > WAITS && t->tunes_threads && n < t->ceiling && need > n) {
        change_threads(f, need < t->ceiling ? need : t->ceiling);
    } else if (share > WAITS && t->tunes_slots && need <= n && add_slot(f)) {
        say(f, "%d batches ahead instead of %d, since some rows take longer", f->n_slots - 1,
            f->n_slots - 2);
    } else if (share < IDLE && t->tunes_threads && n > 1 && need < n && n > t->floor) {
        change_threads(f, need > t->floor ? need : t->floor);
    } else if (t->steps >= SETTLED && t->steps < SETTLED + WINDOW) {
        say(f, "%d %s and %d %s ahead stay", n, threads(n), f->n_slots - 1,
            batches(f->n_slots - 1));
    }
}

bool keel_tuner_is_due(keel_feed *f)
{
    keel_tuner *t = &f->tuner;
    return t->on && ++t->steps >= t->next;
}

void keel_tuner_sees(keel_feed *f, const keel_tuner_look *totals)
{
    keel_tuner *t = &f->tuner;
    const keel_tuner_look *was = &t->totals;
    t->look = (keel_tuner_look){ t->steps - was->steps, totals->seconds - was->seconds,
                                 totals->waited - was->waited, totals->work - was->work,
                                 totals->cpu - was->cpu };
    const bool first = was->steps == 0;
    t->totals = *totals;
    t->totals.steps = t->steps;
    if (!first) decide(f);
    t->next = t->steps + (t->steps < SETTLED ? WINDOW : LATER);
}

void keel_tuner_asks(keel_feed *f)
{
    if (!keel_tuner_is_due(f)) return;
    keel_tuner_look totals = { .seconds = keel_seconds(), .waited = f->waited };
    keel_work_sums(f->work, &totals.work, &totals.cpu);
    keel_tuner_sees(f, &totals);
}

void keel_tuner_short(keel_feed *f)
{
    keel_tuner *t = &f->tuner;
    const int n = keel_feed_threads(f);
    if (n < 2) return;
    t->ceiling = n - 1;
    t->forget = 0;
    t->look.steps = 0;
    t->move = KEEL_TUNER_NOTHING;
    use_threads(f, n - 1);
    say(f, "%d %s instead of %d, since the memory of the input has no room for their buffers",
        n - 1, threads(n - 1), n);
}

/* Of the memory, before the first step. */
static void say_unknown(keel_feed *f)
{
    char line[sizeof f->tuner.line];
    const keel_dataset *d = keel_feed_unknown(f->dataset);
    f->tuner.began = true;
    if (!d) return;
    snprintf(line, sizeof line,
             "step 0: the memory that rows of %.300s take is known only once they are read; keel "
             "data --verify tells the least --input-memory",
             keel_dataset_name(d));
    f->o.on_decision(f->o.context, line);
}

void keel_tuner_say(keel_feed *f)
{
    char line[sizeof f->tuner.line];
    if (!f->o.on_decision) return;
    if (!f->tuner.began) say_unknown(f);
    pthread_mutex_lock(&f->lock);
    memcpy(line, f->tuner.line, sizeof line);
    f->tuner.line[0] = 0;
    pthread_mutex_unlock(&f->lock);
    if (line[0]) f->o.on_decision(f->o.context, line);
}
