/* See pool.h. One lock guards the queue: a task is the reading of a row, tens of microseconds at
 * least, and taking the lock is a tenth of one. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "data/pool.h"
#include "base/memory.h"
#include "base/scratch.h"
#include "data/trail.h"
#include "data/work.h"
#include <pthread.h>
#include <sched.h>

struct keel_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, ready, idle; /* a task was added; one is done; `used` may have grown */
    keel_task *first, **last;
    bool quit, helps; /* the caller runs tasks, too */
    int n_threads, n_trail;
    _Atomic int used; /* of which so many work; changed with the lock held */
    int running;
    keel_scratch scratch; /* of the caller, who is one thread at a time */
    keel_trail *trail;    /* [n_trail] of each thread; the last is the caller's */
    keel_task *wanted;    /* that the caller waits for; NULL: for none, or for all */
    struct pool_thread {
        keel_pool *pool;
        int number;
        keel_scratch scratch; /* guarded by the pool while it runs no task */
        pthread_t id;
    } thread[];
};

/* With the lock held. */
static keel_task *take(keel_pool *p)
{
    keel_task *t = p->first;
    if (t && !(p->first = t->next)) p->last = &p->first;
    return t;
}

/* With the lock held, which is released while the task runs. */
static void run(keel_pool *p, keel_task *t, keel_scratch *scratch)
{
    keel_probe *probe = scratch->probe;
    t->by = probe;
    if (p->wanted == t && p->scratch.probe)
        atomic_store_explicit(&p->scratch.probe->late, probe, memory_order_release);
    p->running++;
    pthread_mutex_unlock(&p->lock);
    keel_relief *relief = keel_account_relief(NULL); /* which waits for tasks, so not within one */
    const keel_probe_span span = keel_probe_begin(probe, t->work);
    t->run(t, scratch);
    keel_probe_end(probe, &span);
    keel_account_relief(relief);
    pthread_mutex_lock(&p->lock);
    p->running--;
    t->done = true;
    if (p->wanted ? p->wanted == t : !p->running) pthread_cond_signal(&p->ready);
}

static void *worker(void *thread)
{
    struct pool_thread *me = thread;
    keel_pool *p = me->pool;
    pthread_mutex_lock(&p->lock);
    while (!p->quit) {
        if (me->number >= p->used) { /* a wait of its own, so that it takes no signal of others */
            pthread_cond_wait(&p->idle, &p->lock);
            continue;
        }
        keel_task *t = take(p);
        if (t) {
            run(p, t, &me->scratch);
        } else {
            pthread_cond_wait(&p->work, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

keel_status keel_pool_create(keel_pool **out, int n_threads, bool helps, keel_work *work,
                             keel_account *account)
{
    keel_pool *p = keel_calloc(1, sizeof *p + (size_t)n_threads * sizeof *p->thread);
    if (!p) return KEEL_ENOMEM;
    if (!(p->trail = keel_calloc((size_t)n_threads + 1, sizeof *p->trail))) {
        keel_free(p);
        return KEEL_ENOMEM;
    }
    p->n_trail = n_threads + 1;
    p->scratch.trail = &p->trail[n_threads];
    p->last = &p->first;
    p->used = n_threads;
    p->helps = helps || !n_threads;
    p->scratch.probe = keel_work_probe(work, p->scratch.trail);
    p->scratch.account = account;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->ready, NULL);
    pthread_cond_init(&p->idle, NULL);
    for (; p->n_threads < n_threads; p->n_threads++) {
        struct pool_thread *t = &p->thread[p->n_threads];
        t->pool = p;
        t->number = p->n_threads;
        t->scratch.account = account;
        t->scratch.trail = &p->trail[t->number];
        t->scratch.probe = keel_work_probe(work, t->scratch.trail);
        if (pthread_create(&t->id, NULL, worker, t)) break;
    }
    if (n_threads && !p->n_threads) {
        keel_pool_destroy(p);
        return keel_fail(KEEL_ENOMEM, "pipeline: no thread could be started");
    }
    *out = p;
    return KEEL_OK;
}

void keel_pool_destroy(keel_pool *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->work);
    pthread_cond_broadcast(&p->idle);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_threads; i++) pthread_join(p->thread[i].id, NULL);
    for (int i = 0; i < p->n_threads; i++) keel_scratch_free(&p->thread[i].scratch);
    keel_scratch_free(&p->scratch);
    for (int i = 0; i < p->n_trail; i++) keel_faults_free(&p->trail[i].faults);
    keel_free(p->trail);
    pthread_cond_destroy(&p->idle);
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    keel_free(p);
}

void keel_pool_use(keel_pool *p, int n_threads)
{
    pthread_mutex_lock(&p->lock);
    p->used = n_threads < 1 ? 1 : n_threads;
    pthread_cond_broadcast(&p->work); /* those that stop must not wait there */
    pthread_cond_broadcast(&p->idle);
    pthread_mutex_unlock(&p->lock);
}

void keel_pool_let_go(keel_pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->running) pthread_cond_wait(&p->ready, &p->lock);
    for (int i = 0; i < p->n_threads; i++) keel_scratch_free(&p->thread[i].scratch);
    keel_scratch_free(&p->scratch);
    pthread_mutex_unlock(&p->lock);
}

const keel_scratch *keel_pool_scratch(const keel_pool *p)
{
    return &p->scratch;
}

int keel_reading_threads(void)
{
    enum { MOST = 16 };
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    return n < 1 ? 1 : n > MOST ? MOST : n;
}

keel_trail *keel_pool_trails(keel_pool *p, int *n)
{
    *n = p->n_trail;
    return p->trail;
}

int keel_pool_used(const keel_pool *p)
{
    return atomic_load_explicit(&p->used, memory_order_relaxed);
}

int keel_pool_threads(const keel_pool *p)
{
    return p->n_threads;
}

void keel_pool_add(keel_pool *p, keel_task *t)
{
    t->next = NULL;
    t->done = false;
    t->by = NULL;
    pthread_mutex_lock(&p->lock);
    *p->last = t;
    p->last = &t->next;
    if (p->n_threads) pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

/* Who waits is not at work, for who looks at its trail. */
static void wait(keel_pool *p, keel_task *t, const void *stage)
{
    keel_probe *probe = p->scratch.probe;
    if (probe) {
        atomic_store_explicit(&probe->asked, stage, memory_order_relaxed);
        atomic_store_explicit(&probe->late, t->by, memory_order_release);
    }
    const keel_trail_mark before = keel_trail_enter(p->scratch.trail, NULL, 0);
    const keel_probe_mark m = keel_probe_enter(probe, keel_work_waits, KEEL_PART_ALL);
    const bool tells = probe && !probe->measures; /* also then, since others look */
    const void *now = NULL;
    if (tells) now = atomic_exchange_explicit(&probe->now, keel_work_waits, memory_order_relaxed);
    p->wanted = t;
    pthread_cond_wait(&p->ready, &p->lock);
    p->wanted = NULL;
    if (tells) atomic_store_explicit(&probe->now, now, memory_order_relaxed);
    keel_probe_leave(probe, m);
    keel_trail_leave(p->scratch.trail, before);
}

void keel_pool_wait(keel_pool *p, keel_task *t, const void *stage)
{
    pthread_mutex_lock(&p->lock);
    while (!t->done) {
        keel_task *other = p->helps ? take(p) : NULL;
        if (other)
            run(p, other, &p->scratch);
        else
            wait(p, t, stage);
    }
    pthread_mutex_unlock(&p->lock);
}
