/* See pool.h. One lock guards the queue: a task is the reading of a row, tens of microseconds at
 * least, and taking the lock is a tenth of one. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "data/pool.h"
#include "base/memory.h"
#include "base/scratch.h"
#include "data/trail.h"
#include <pthread.h>
#include <sched.h>

struct keel_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, ready; /* a task was added; one is done */
    keel_task *first, **last;
    bool quit;
    int n_threads, n_begun, n_trail;
    keel_scratch scratch; /* of the caller, who is one thread at a time */
    keel_trail *trail;    /* [n + 1] of each thread; the last is the caller's */
    pthread_t thread[];
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
    pthread_mutex_unlock(&p->lock);
    t->run(t, scratch);
    pthread_mutex_lock(&p->lock);
    t->done = true;
    pthread_cond_broadcast(&p->ready);
}

static void *worker(void *pool)
{
    keel_pool *p = pool;
    keel_scratch scratch = { 0 };
    pthread_mutex_lock(&p->lock);
    scratch.trail = &p->trail[p->n_begun++];
    while (!p->quit) {
        keel_task *t = take(p);
        if (t)
            run(p, t, &scratch);
        else
            pthread_cond_wait(&p->work, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    keel_scratch_free(&scratch);
    return NULL;
}

keel_status keel_pool_create(keel_pool **out, int n_threads)
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
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->ready, NULL);
    while (p->n_threads < n_threads && !pthread_create(&p->thread[p->n_threads], NULL, worker, p))
        p->n_threads++;
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
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_threads; i++) pthread_join(p->thread[i], NULL);
    keel_scratch_free(&p->scratch);
    for (int i = 0; i < p->n_trail; i++) keel_faults_free(&p->trail[i].faults);
    keel_free(p->trail);
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    keel_free(p);
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

int keel_pool_threads(const keel_pool *p)
{
    return p->n_threads;
}

void keel_pool_add(keel_pool *p, keel_task *t)
{
    t->next = NULL;
    t->done = false;
    pthread_mutex_lock(&p->lock);
    *p->last = t;
    p->last = &t->next;
    if (p->n_threads) pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

/* Who waits is not at work, for who looks at its trail. */
static void wait(keel_pool *p)
{
    const keel_trail_mark before = keel_trail_enter(p->scratch.trail, NULL, 0);
    pthread_cond_wait(&p->ready, &p->lock);
    keel_trail_leave(p->scratch.trail, before);
}

void keel_pool_wait(keel_pool *p, keel_task *t)
{
    pthread_mutex_lock(&p->lock);
    while (!t->done) {
        keel_task *other = take(p);
        if (other)
            run(p, other, &p->scratch);
        else
            wait(p);
    }
    pthread_mutex_unlock(&p->lock);
}
