/* Processes of a group that are threads of one program, for tests. Messages are copied, and one
 * that is not as long as the other side expects is an error, so that a wrong order of exchanges is
 * seen. A member may have the name of another machine. */
#ifndef KEEL_TESTS_THREAD_GROUP_H
#define KEEL_TESTS_THREAD_GROUP_H
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "keel/process_group.h"

enum { THREADS_MAX = 16 };

typedef struct thread_message {
    struct thread_message *next;
    int number;
    size_t n_bytes;
    char data[];
} thread_message;

typedef struct thread_group {
    int count;
    pthread_mutex_t lock;
    thread_message *queue[THREADS_MAX][THREADS_MAX]; /* [from][to] */
    struct thread_member {
        struct thread_group *group;
        int rank;
        const char *host; /* NULL: "here" */
        void *receive[KEEL_EXCHANGES_MAX][THREADS_MAX];
        size_t receive_bytes[KEEL_EXCHANGES_MAX][THREADS_MAX];
        int with[KEEL_EXCHANGES_MAX][THREADS_MAX], n_with[KEEL_EXCHANGES_MAX];
        bool closed;
        int exchanges;     /* so far */
        int fail_at;       /* its start fails at this exchange; 0: never */
        int mute_at;       /* it stops answering there: it sends nothing more */
        int test_fails_at; /* its test fails from this exchange on; 0: never */
        int late;          /* calls of its test that see nothing: up to so many, by chance */
        int calls;         /* of its test, in this exchange */
    } member[THREADS_MAX];
} thread_group;

static const char *thread_host(void *context, int rank)
{
    const struct thread_member *m = context;
    const char *host = m->group->member[rank].host;
    return host ? host : "here";
}

static int thread_start(void *context, int number, const keel_exchange *e, char *error, size_t size)
{
    struct thread_member *m = context;
    thread_group *g = m->group;
    m->exchanges++;
    m->calls = 0;
    if (m->exchanges == m->fail_at) {
        snprintf(error, size, "the test says so");
        return -1;
    }
    pthread_mutex_lock(&g->lock);
    m->n_with[number] = e->with ? e->n_with : g->count;
    for (int i = 0; i < m->n_with[number]; i++) {
        const int q = m->with[number][i] = e->with ? e->with[i] : i;
        m->receive[number][q] = e->receive[q];
        m->receive_bytes[number][q] = q == m->rank ? 0 : e->receive_bytes[q];
        if (q == m->rank || e->send_bytes[q] == 0) continue;
        if (m->mute_at && m->exchanges >= m->mute_at) continue;
        thread_message **at = &g->queue[m->rank][q], *new = malloc(sizeof *new + e->send_bytes[q]);
        while (*at) at = &(*at)->next;
        new->next = NULL;
        new->number = number;
        new->n_bytes = e->send_bytes[q];
        memcpy(new->data, e->send[q], e->send_bytes[q]);
        *at = new;
    }
    pthread_mutex_unlock(&g->lock);
    return 0;
}

static int thread_test(void *context, int number, char *error, size_t size)
{
    struct thread_member *m = context;
    thread_group *g = m->group;
    int state = 1;
    if (m->test_fails_at && m->exchanges >= m->test_fails_at) { /* several may be on their way */
        snprintf(error, size, "the test says so");
        return -1;
    }
    if (m->late && m->calls++ < (m->exchanges * 7919 + m->rank * 104729) % m->late) return 0;
    pthread_mutex_lock(&g->lock);
    for (int i = 0; i < m->n_with[number] && state >= 0; i++) {
        const int q = m->with[number][i];
        thread_message **at = &g->queue[q][m->rank];
        if (m->receive_bytes[number][q] == 0) continue;
        while (*at && (*at)->number != number) at = &(*at)->next;
        thread_message *first = *at;
        if (!first) {
            state = 0;
            continue;
        }
        if (first->n_bytes != m->receive_bytes[number][q]) {
            snprintf(error, size, "process %d sent %zu bytes where process %d expects %zu", q,
                     first->n_bytes, m->rank, m->receive_bytes[number][q]);
            state = -1;
            break;
        }
        memcpy(m->receive[number][q], first->data, first->n_bytes);
        m->receive_bytes[number][q] = 0;
        *at = first->next;
        free(first);
    }
    pthread_mutex_unlock(&g->lock);
    return state;
}

static int thread_awaited(void *context, int number)
{
    const struct thread_member *m = context;
    for (int i = 0; i < m->n_with[number]; i++)
        if (m->receive_bytes[number][m->with[number][i]] > 0) return m->with[number][i];
    return -1;
}

static void thread_close(void *context, bool failed)
{
    struct thread_member *m = context;
    (void)failed;
    m->closed = true;
}

static keel_process_group thread_group_of(thread_group *g, int rank)
{
    g->member[rank].group = g;
    g->member[rank].rank = rank;
    return (keel_process_group){ KEEL_PROCESS_GROUP,   .rank = rank,
                                 .count = g->count,    .context = &g->member[rank],
                                 .host = thread_host,  .start = thread_start,
                                 .test = thread_test,  .awaited = thread_awaited,
                                 .close = thread_close };
}

static void thread_group_begin(thread_group *g, int count)
{
    *g = (thread_group){ .count = count };
    pthread_mutex_init(&g->lock, NULL);
}

static void thread_group_end(thread_group *g)
{
    for (int p = 0; p < g->count; p++)
        for (int q = 0; q < g->count; q++)
            while (g->queue[p][q]) {
                thread_message *first = g->queue[p][q];
                g->queue[p][q] = first->next;
                free(first);
            }
    pthread_mutex_destroy(&g->lock);
}

#endif
