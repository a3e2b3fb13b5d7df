/* See team.h. A step begins and ends with a meeting; between steps all workers except the caller
 * wait in `start`. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "device/team.h"
#include "base/meeting.h"
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

typedef struct member {
    keel_team *team;
    pthread_t thread;
    int index, core;
} member;

struct keel_team {
    int n, started;
    keel_meeting *start, *meeting, *end;
    void (*work)(void *, int);
    void *context;
    bool quit;            /* written before the meeting at `start`, read after it */
    bool failed;          /* not all threads started; guarded by `gate` */
    pthread_mutex_t gate; /* held until all threads have started, or one failed to */
    int entered;
    cpu_set_t before; /* the caller's affinity mask, restored by keel_team_leave */
    member *member;
};

static void bind_to(int core)
{
    cpu_set_t set;
    if (core < 0 || core >= CPU_SETSIZE) return;
    CPU_ZERO(&set);
    CPU_SET((unsigned)core, &set);
    sched_setaffinity(0, sizeof set, &set); /* failure costs only speed */
}

static void *serve(void *arg)
{
    const member *m = arg;
    keel_team *t = m->team;
    pthread_mutex_lock(&t->gate);
    const bool failed = t->failed;
    pthread_mutex_unlock(&t->gate);
    if (failed) return NULL;
    bind_to(m->core);
    keel_cpu_single_thread();
    for (;;) {
        keel_meeting_wait(t->start);
        if (t->quit) return NULL;
        t->work(t->context, m->index);
        keel_meeting_wait(t->end);
    }
}

int keel_team_spins(int n)
{
    enum { SPINS = 4000 };
    return n <= sysconf(_SC_NPROCESSORS_ONLN) ? SPINS : 0;
}

keel_status keel_team_create(keel_team **out, const int *core, int n)
{
    keel_status s = KEEL_ENOMEM;
    keel_team *t = keel_calloc(1, sizeof *t);
    if (!t) return s;
    t->n = n;
    pthread_mutex_init(&t->gate, NULL);
    const int spins = keel_team_spins(n);
    if (!(t->member = keel_calloc((size_t)n, sizeof *t->member))) goto out;
    if ((s = keel_meeting_create(&t->start, n, spins)) < 0) goto out;
    if ((s = keel_meeting_create(&t->meeting, n, spins)) < 0) goto out;
    if ((s = keel_meeting_create(&t->end, n, spins)) < 0) goto out;
    for (int i = 0; i < n; i++) t->member[i] = (member){ .team = t, .index = i, .core = core[i] };
    pthread_mutex_lock(&t->gate);
    t->started = 1;
    int error = 0;
    while (t->started < n && !error) {
        member *m = &t->member[t->started];
        error = pthread_create(&m->thread, NULL, serve, m);
        t->started += !error;
    }
    t->failed = error != 0;
    pthread_mutex_unlock(&t->gate);
    if (error) {
        s = keel_fail(KEEL_EDEVICE, "worker %d of %d cannot be started: %s", t->started, n,
                      strerror(error));
        goto out;
    }
    *out = t;
    return KEEL_OK;
out:
    keel_team_destroy(t);
    return s;
}

void keel_team_destroy(keel_team *t)
{
    if (!t) return;
    if (t->started > 1) {
        if (!t->failed) { /* all threads wait in `start`, or will reach it */
            t->quit = true;
            keel_meeting_wait(t->start);
        }
        for (int i = 1; i < t->started; i++) pthread_join(t->member[i].thread, NULL);
    }
    keel_meeting_destroy(t->start);
    keel_meeting_destroy(t->meeting);
    keel_meeting_destroy(t->end);
    pthread_mutex_destroy(&t->gate);
    keel_free(t->member);
    keel_free(t);
}

int keel_team_size(const keel_team *t)
{
    return t->n;
}

void keel_team_enter(keel_team *t)
{
    if (t->entered++) return;
    sched_getaffinity(0, sizeof t->before, &t->before);
    bind_to(t->member[0].core);
    keel_cpu_single_thread();
}

void keel_team_leave(keel_team *t)
{
    if (--t->entered) return;
    sched_setaffinity(0, sizeof t->before, &t->before);
    keel_cpu_restore_threads();
}

void keel_team_run(keel_team *t, void (*work)(void *, int), void *context)
{
    t->work = work;
    t->context = context;
    keel_meeting_wait(t->start);
    work(context, 0);
    keel_meeting_wait(t->end);
}

void keel_team_meet(keel_team *t)
{
    keel_meeting_wait(t->meeting);
}
