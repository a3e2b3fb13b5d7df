/* See work.h. Each number has one writer, the thread of its probe, so relaxed loads and stores do;
 * blamed time is written by the thread that waits. */
#include "data/work.h"
#include "base/memory.h"
#include "data/stage.h"
#include "data/trail.h"
#include <pthread.h>
#include <time.h>

const char keel_work_waits[] = "waiting", keel_work_gathers[] = "gathering",
           keel_work_makes[] = "look-up layers";

enum {
    CLOCK_NS = 40,   /* what looking at the clock costs, about */
    SHARE = 2000,    /* of a row's time that it may cost: 1 / SHARE */
    SKIP_MAX = 1023, /* rows between two that are measured; a slow one among them is missed */
    CPU_EVERY = 4000000,
    HOPS = 4
};

struct keel_work {
    int n;
    const void *key[KEEL_WORK_MAX];
    const keel_dataset *dataset[KEEL_WORK_MAX];
    _Atomic int64_t blamed[KEEL_WORK_MAX][KEEL_PART_COUNT], unknown;
    keel_probe *all; /* [n_room] */
    int n_room;
    _Atomic int n_probe; /* given to threads */
    keel_probe *probe[KEEL_PROBES_MAX];
    pthread_mutex_t lock;
};

static void add(_Atomic int64_t *to, int64_t n)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static int64_t get(const _Atomic int64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* The line of a key; those that the table has no room for share the last. -1: none. */
static int line_of(const keel_work *w, const void *key)
{
    if (!key || key == keel_work_waits) return -1;
    for (int i = 0; i < w->n; i++)
        if (w->key[i] == key) return i;
    return w->n - 1;
}

static void list(keel_work *w, const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    for (int i = 0; s && i < s->n_parent; i++) list(w, s->parent[i]);
    for (int i = 0; i < w->n; i++)
        if (w->key[i] == d->origin) return;
    if (w->n == KEEL_WORK_MAX - 2) return;
    w->dataset[w->n] = d;
    w->key[w->n++] = d->origin;
}

keel_status keel_work_create(keel_work **out, const keel_dataset *d, int n_probe)
{
    keel_work *w = keel_calloc(1, sizeof *w);
    if (!w) return KEEL_ENOMEM;
    w->n_room = n_probe < KEEL_PROBES_MAX ? n_probe : KEEL_PROBES_MAX;
    if (!(w->all = keel_aligned_calloc((size_t)w->n_room, sizeof *w->all))) {
        keel_free(w);
        return KEEL_ENOMEM;
    }
    list(w, d);
    w->key[w->n++] = keel_work_makes;
    w->key[w->n++] = keel_work_gathers;
    pthread_mutex_init(&w->lock, NULL);
    *out = w;
    return KEEL_OK;
}

void keel_work_destroy(keel_work *w)
{
    if (!w) return;
    keel_free(w->all);
    pthread_mutex_destroy(&w->lock);
    keel_free(w);
}

bool keel_work_silent;

keel_probe *keel_work_probe(keel_work *w, const keel_trail *trail)
{
    if (!w || keel_work_silent) return NULL;
    pthread_mutex_lock(&w->lock);
    keel_probe *p = NULL;
    const int n = atomic_load(&w->n_probe);
    if (n < w->n_room) {
        p = &w->all[n];
        p->work = w;
        p->trail = trail;
        atomic_store(&p->place, INT64_MAX);
        w->probe[n] = p;
        atomic_store(&w->n_probe, n + 1);
    }
    pthread_mutex_unlock(&w->lock);
    return p;
}

/* Charge what was done since the last look. */
static void charge(keel_probe *p, int64_t now)
{
    const int i = line_of(p->work, atomic_load_explicit(&p->now, memory_order_relaxed));
    const int part = atomic_load_explicit(&p->part, memory_order_relaxed);
    if (i >= 0) add(&p->ns[i][part], (now - p->since) * p->weight);
    p->since = now;
    p->switches++;
}

keel_probe_mark keel_probe_switch(keel_probe *p, const void *key, int part, int64_t rows)
{
    const keel_probe_mark m = { atomic_load_explicit(&p->now, memory_order_relaxed),
                                atomic_load_explicit(&p->part, memory_order_relaxed) };
    charge(p, keel_clock_ns());
    atomic_store_explicit(&p->now, key, memory_order_relaxed);
    atomic_store_explicit(&p->part, part, memory_order_relaxed);
    if (rows && key != m.key && key != keel_work_waits)
        add(&p->rows[line_of(p->work, key)], rows * p->weight);
    return m;
}

void keel_probe_count(keel_probe *p, int64_t rows)
{
    const int i = line_of(p->work, atomic_load_explicit(&p->now, memory_order_relaxed));
    if (i >= 0) add(&p->rows[i], rows * p->weight);
}

static void note_cpu(keel_probe *p, int64_t now)
{
    struct timespec t;
    if (now - p->looked < CPU_EVERY) return;
    p->looked = now;
    if (!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t))
        atomic_store_explicit(&p->cpu, (int64_t)t.tv_sec * 1000000000 + t.tv_nsec,
                              memory_order_relaxed);
}

keel_probe_span keel_probe_start(keel_probe *p, int kind)
{
    const int64_t now = keel_clock_ns();
    keel_probe_span s = { .any = true,
                          .outer = p->measures,
                          .inner = p->skip[kind] == 0,
                          .kind = p->kind,
                          .part = atomic_load_explicit(&p->part, memory_order_relaxed),
                          .now = atomic_load_explicit(&p->now, memory_order_relaxed),
                          .weight = p->weight,
                          .begin = p->begin,
                          .from = now };
    if (s.outer) charge(p, now);
    s.switches = p->switches;
    if (!s.inner) p->skip[kind]--;
    p->measures = s.inner;
    p->kind = kind;
    p->weight = p->skipped[kind] + 1;
    p->begin = p->since = now;
    p->switches = 1;
    return s;
}

void keel_probe_stop(keel_probe *p, const keel_probe_span *s)
{
    const int64_t now = keel_clock_ns();
    if (s->inner) {
        const int64_t took = now - p->begin;
        charge(p, now);
        const int64_t cost = (p->switches + 1) * CLOCK_NS * SHARE;
        int64_t skip = took > 0 ? cost / took : SKIP_MAX;
        if (skip > SKIP_MAX) skip = SKIP_MAX;
        if (p->kind == KEEL_WORK_YIELD) skip = 0;
        p->skip[p->kind] = p->skipped[p->kind] = skip;
        note_cpu(p, now);
    }
    p->measures = s->outer;
    if (!s->outer) return;
    p->kind = s->kind;
    p->weight = s->weight;
    p->begin = s->begin + (now - s->from);
    p->since = now;
    p->switches = s->switches + 2;
    atomic_store_explicit(&p->now, s->now, memory_order_relaxed);
    atomic_store_explicit(&p->part, s->part, memory_order_relaxed);
}

static const keel_probe *oldest(const keel_work *w)
{
    const keel_probe *p = NULL;
    int64_t least = INT64_MAX;
    for (int i = 0; i < atomic_load(&w->n_probe); i++) {
        const int64_t at = get(&w->probe[i]->place);
        if (at >= least) continue;
        least = at;
        p = w->probe[i];
    }
    return p;
}

/* What a thread works on; of rows that are not measured its trail tells it. */
static const void *works_on(const keel_probe *p)
{
    const void *key = atomic_load_explicit(&p->now, memory_order_relaxed);
    if (key || !p->trail) return key;
    return atomic_load_explicit(&p->trail->in, memory_order_relaxed);
}

keel_work_place keel_work_look(const keel_work *w, const keel_probe *first)
{
    const keel_probe *p = first ? first : oldest(w);
    const void *key = p ? works_on(p) : NULL;
    int part = p ? atomic_load_explicit(&p->part, memory_order_relaxed) : 0;
    for (int i = 0; i < HOPS && key == keel_work_waits; i++) {
        const keel_probe *late = atomic_load_explicit(&p->late, memory_order_acquire);
        const void *its = late ? works_on(late) : NULL;
        key = its ? its : atomic_load_explicit(&p->asked, memory_order_relaxed);
        part = its ? atomic_load_explicit(&late->part, memory_order_relaxed) : 0;
        if (its) p = late;
    }
    return (keel_work_place){ line_of(w, key), part };
}

void keel_work_blame(keel_work *w, keel_work_place at, int64_t ns)
{
    atomic_fetch_add_explicit(at.line < 0 ? &w->unknown : &w->blamed[at.line][at.part], ns,
                              memory_order_relaxed);
}

int keel_work_lines(const keel_work *w, keel_work_line line[KEEL_WORK_MAX])
{
    double sum = 0;
    for (int i = 0; i < w->n; i++) {
        line[i] = (keel_work_line){ .key = w->key[i], .dataset = w->dataset[i] };
        for (int k = 0; k < KEEL_PART_COUNT; k++) {
            line[i].blamed[k] = 1e-9 * (double)get(&w->blamed[i][k]);
            for (int t = 0; t < atomic_load(&w->n_probe); t++)
                line[i].seconds[k] += 1e-9 * (double)get(&w->probe[t]->ns[i][k]);
            sum += line[i].seconds[k];
        }
        for (int t = 0; t < atomic_load(&w->n_probe); t++)
            line[i].rows += (double)get(&w->probe[t]->rows[i]);
    }
    const double unknown = 1e-9 * (double)get(&w->unknown);
    for (int i = 0; i < w->n && sum > 0; i++)
        for (int k = 0; k < KEEL_PART_COUNT; k++)
            line[i].blamed[k] += unknown * line[i].seconds[k] / sum;
    return w->n;
}

void keel_work_sums(const keel_work *w, double *seconds, double *cpu)
{
    *seconds = *cpu = 0;
    for (int t = 0; t < atomic_load(&w->n_probe); t++) {
        const keel_probe *p = w->probe[t];
        *cpu += 1e-9 * (double)get(&p->cpu);
        for (int i = 0; i < w->n; i++)
            for (int k = 0; k < KEEL_PART_COUNT; k++) *seconds += 1e-9 * (double)get(&p->ns[i][k]);
    }
}
