/* A group of stand-ins: their streams meet for each sum, and the last to come adds up, rank after
 * rank. */
#ifndef KEEL_TESTS_STANDIN_SUMS_H
#define KEEL_TESTS_STANDIN_SUMS_H
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "device/device.h"
#include "tensor/dtype.h"

enum { STANDIN_RANKS = 16 };

typedef struct standin_group {
    keel_device_group base;
    int n, there; /* ranks; those that have come to this sum */
    int inside;   /* streams */
    int64_t done; /* sums so far */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *at[STANDIN_RANKS];
    int64_t count[STANDIN_RANKS];
} standin_group;

static standin_group *standin_group_make(const struct keel_device_type *type, int n)
{
    standin_group *g = calloc(1, sizeof *g);
    if (!g || n > STANDIN_RANKS) abort();
    g->base.type = type;
    g->n = n;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    return g;
}

static void standin_group_free(standin_group *g)
{
    pthread_mutex_lock(&g->lock);
    while (g->inside > 0) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
    free(g);
}

static void standin_add_up(standin_group *g, keel_dtype real)
{
    for (int64_t i = 0; i < g->count[0]; i++) {
        double wide = 0;
        float narrow = 0;
        for (int r = 0; r < g->n; r++)
            if (real == KEEL_FLOAT64)
                wide += ((const double *)g->at[r])[i];
            else
                narrow += ((const float *)g->at[r])[i];
        for (int r = 0; r < g->n; r++)
            if (real == KEEL_FLOAT64)
                ((double *)g->at[r])[i] = wide;
            else
                ((float *)g->at[r])[i] = narrow;
    }
}

/* By a stream. */
static void standin_sum_now(standin_group *g, int rank, void *at, int64_t count, keel_dtype real)
{
    pthread_mutex_lock(&g->lock);
    if (!keel_device_group_works(&g->base)) {
        pthread_mutex_unlock(&g->lock);
        return;
    }
    g->at[rank] = at;
    g->count[rank] = count;
    const int64_t sum = g->done;
    g->inside++;
    if (++g->there == g->n) {
        for (int r = 1; r < g->n; r++)
            if (g->count[r] != g->count[0]) {
                fprintf(stderr, "rank %d adds %lld numbers, rank 0 %lld\n", r,
                        (long long)g->count[r], (long long)g->count[0]);
                abort();
            }
        if (keel_device_group_works(&g->base)) standin_add_up(g, real);
        g->there = 0;
        g->done++;
        pthread_cond_broadcast(&g->changed);
    }
    while (g->done == sum && keel_device_group_works(&g->base))
        pthread_cond_wait(&g->changed, &g->lock);
    g->inside--;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void standin_give_up(keel_device_group *group)
{
    standin_group *g = (standin_group *)group;
    pthread_mutex_lock(&g->lock);
    __atomic_store_n(&g->base.broken, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

#endif
