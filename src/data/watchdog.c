/* See watchdog.h. Who waits says so by a number; the thread looks at it some times within the time
 * that is allowed. So neither waiting nor reading needs a clock. */
#include "data/watchdog.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/stage.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LINE = 512, LOOKS = 8 };
#define DEFAULT_SECONDS 60.0
#define HURRY_SECONDS   1.0

typedef struct watched {
    keel_trail *trail;
    uint64_t count; /* when it was looked at last */
    double since;   /* the first look that saw this count */
} watched;

struct keel_watchdog {
    keel_input_watch o;
    double every; /* seconds between two looks */
    const keel_dataset *dataset;
    char name[128];
    void (*wake)(void *context);
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t quit_set;
    bool quit;
    int n;
    watched *at;
    uint64_t last;            /* the waiter's own: waits so far */
    _Atomic uint64_t waiting; /* the number of the wait; 0: nobody waits */
    uint64_t seen;            /* by the thread */
    double since;
    bool told;
    _Atomic bool over;
    char line[LINE];
};

/* ---- the line ---------------------------------------------------------------------------------
 */

static bool made_of(const keel_dataset *d, const keel_data_origin *in)
{
    const keel_applied *s = d->origin->applied;
    if (d->origin == in) return true;
    for (int i = 0; s && i < s->n_parent; i++)
        if (made_of(s->parent[i], in)) return true;
    return false;
}

/* " <- batch <- map <- photos", down to the dataset that is being read. */
static void add_chain(keel_text *t, const keel_dataset *d, const keel_data_origin *in)
{
    for (;;) {
        const keel_applied *s = d->origin->applied;
        keel_text_add(t, " <- %.60s", s ? s->stage->type.name : keel_dataset_name(d));
        if (d->origin == in || !s) return;
        const keel_dataset *next = s->parent[0];
        for (int i = s->n_parent - 1; i > 0; i--)
            if (made_of(s->parent[i], in)) next = s->parent[i];
        d = next;
    }
}

static void add_busy(keel_text *t, const keel_data_origin *in, int64_t row, double seconds)
{
    const bool named = in->source->row_name && row >= 0 && row < in->spec.rows;
    const char *name = named && !in->applied ? in->source->row_name(in->state, row) : NULL;
    const char *of = in->applied ? in->applied->stage->type.name : in->name;
    if (row < 0) /* of a dataset that this stage has made */
        keel_text_add(t, ": a thread has been in %.60s", of);
    else
        keel_text_add(t, ": a thread has been at %s %lld of %.60s", in->applied ? "element" : "row",
                      (long long)row, of);
    if (name) keel_text_add(t, " (%.160s)", name);
    keel_text_add(t, " for %.3g s", seconds);
}

static void write_line(keel_watchdog *w, double now)
{
    keel_text t = { 0 };
    const watched *longest = NULL;
    int busy = 0;
    keel_text_add(&t, "no rows for %.3g s", now - w->since);
    for (int i = 0; i < w->n; i++) {
        if (!atomic_load(&w->at[i].trail->in)) continue;
        busy++;
        if (!longest || w->at[i].since < longest->since) longest = &w->at[i];
    }
    if (!w->dataset) {
        keel_text_add(&t, ": %s is being opened", w->name);
    } else if (longest) {
        const int64_t row = atomic_load(&longest->trail->row);
        const keel_data_origin *in = atomic_load(&longest->trail->in);
        keel_text_add(&t, ": step");
        add_chain(&t, w->dataset, in);
        if (in) add_busy(&t, in, row, now - longest->since);
        if (busy > 1) keel_text_add(&t, ", and %d more are busy", busy - 1);
    } else {
        keel_text_add(&t, ": step");
        add_chain(&t, w->dataset, NULL);
        keel_text_add(&t, ": no thread reads");
    }
    keel_printable(w->line, sizeof w->line, t.data ? t.data : "no rows");
    keel_text_free(&t);
}

/* ---- the thread -------------------------------------------------------------------------------
 */

/* Seconds that somebody may wait. */
static double limit_of(const keel_watchdog *w)
{
    const double limit = w->o.limit > 0 ? w->o.limit : INFINITY;
    const bool hurries = w->o.hurries && w->o.hurries(w->o.context);
    return hurries ? fmin(limit, HURRY_SECONDS) : limit;
}

static void look(keel_watchdog *w)
{
    const uint64_t waiting = atomic_load(&w->waiting);
    const double now = keel_seconds();
    for (int i = 0; i < w->n; i++) {
        const uint64_t count = atomic_load(&w->at[i].trail->count);
        if (count == w->at[i].count && w->at[i].since > 0) continue;
        w->at[i].count = count;
        w->at[i].since = now;
    }
    if (!waiting || waiting != w->seen) {
        w->seen = waiting;
        w->since = now;
        w->told = false;
        return;
    }
    const double waited = now - w->since;
    const bool over = waited >= limit_of(w) && !atomic_load(&w->over);
    if (!over && (w->told || waited < w->o.seconds)) return;
    w->told = true;
    write_line(w, now);
    if (w->o.tell) w->o.tell(w->o.context, w->line, over);
    if (!over) return;
    atomic_store(&w->over, true);
    if (w->wake) w->wake(w->context);
}

static void *watch(void *watchdog)
{
    keel_watchdog *w = watchdog;
    struct timespec until;
    pthread_mutex_lock(&w->lock);
    while (!w->quit) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        const int64_t ns = until.tv_nsec + (int64_t)(w->every * 1e9);
        until.tv_sec += ns / 1000000000;
        until.tv_nsec = ns % 1000000000;
        pthread_cond_timedwait(&w->quit_set, &w->lock, &until);
        if (w->quit) break;
        look(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static keel_status check(keel_input_watch *out, const keel_input_watch *o)
{
    *out = *o;
    if (o->size != sizeof *o)
        return keel_fail(KEEL_EARG, "input watch: size must be sizeof(keel_input_watch)");
    if (!(o->seconds >= 0 && o->limit >= 0 && o->seconds < 1e9 && o->limit < 1e9))
        return keel_fail(KEEL_EARG, "input watch: seconds and limit must not be negative");
    if (o->seconds == 0) out->seconds = DEFAULT_SECONDS;
    if (out->limit > 0 && out->seconds > out->limit) out->seconds = out->limit;
    return KEEL_OK;
}

keel_status keel_watchdog_create(keel_watchdog **out, const keel_input_watch *o,
                                 const keel_dataset *d, const char *name, void (*wake)(void *),
                                 void *context)
{
    pthread_condattr_t monotonic;
    keel_input_watch checked;
    *out = NULL;
    if (!o) return KEEL_OK;
    KEEL_TRY(check(&checked, o));
    keel_watchdog *w = keel_calloc(1, sizeof *w);
    if (!w) return KEEL_ENOMEM;
    w->o = checked;
    w->every = checked.seconds / LOOKS < 1 ? checked.seconds / LOOKS : 1;
    w->dataset = d;
    snprintf(w->name, sizeof w->name, "%s", name);
    w->wake = wake;
    w->context = context;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->quit_set, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&w->thread, NULL, watch, w)) {
        pthread_cond_destroy(&w->quit_set);
        pthread_mutex_destroy(&w->lock);
        keel_free(w);
        return keel_fail(KEEL_ENOMEM, "no thread could be started to watch over the input");
    }
    *out = w;
    return KEEL_OK;
}

void keel_watchdog_destroy(keel_watchdog *w)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->quit = true;
    pthread_cond_signal(&w->quit_set);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->quit_set);
    pthread_mutex_destroy(&w->lock);
    keel_free(w->at);
    keel_free(w);
}

keel_status keel_watchdog_add(keel_watchdog *w, keel_trail *trail, int n)
{
    keel_status s = KEEL_OK;
    if (!w) return s;
    pthread_mutex_lock(&w->lock);
    watched *at = keel_grow(w->at, (size_t)(w->n + n), sizeof *at);
    if (at) {
        w->at = at;
        for (int i = 0; i < n; i++) at[w->n++] = (watched){ .trail = &trail[i] };
    } else {
        s = KEEL_ENOMEM;
    }
    pthread_mutex_unlock(&w->lock);
    return s;
}

void keel_watchdog_begin(keel_watchdog *w)
{
    if (w) atomic_store(&w->waiting, ++w->last);
}

void keel_watchdog_end(keel_watchdog *w)
{
    if (w) atomic_store(&w->waiting, 0);
}

bool keel_watchdog_is_over(const keel_watchdog *w)
{
    return w && atomic_load(&w->over);
}

keel_status keel_watchdog_fail(keel_watchdog *w)
{
    return keel_fail(KEEL_ETIMEOUT, "%s", w->line);
}
