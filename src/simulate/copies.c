/* See copies.h. What a core has written another reads from the other's cache or from a shared one,
 * which is slower than a copy of one's own bytes, so two threads on two cores do it. An MPI has
 * more to do: it copies in pieces, and asks and answers for each. On one machine, on which other
 * programs ran meanwhile, the copies alone reached 40 to 50 GB/s, and the fastest exchanges of 0.5
 * and 2 MiB by Open MPI 4.1 and MPICH 4.0 mostly 7 to 14 (one 25). So a quarter of the copies' rate
 * is taken: a rough figure, which local= of a network replaces. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "simulate/copies.h"
#include "base/clock.h"
#include "base/memory.h"
#include "device/team.h"
#include <string.h>

enum { BYTES = 1 << 20, ROUNDS = 12 };
#define REACHED 0.25

typedef struct exchange {
    keel_team *team;
    int n; /* threads */
    char *own[2], *shared[2], *got[2];
    double best; /* seconds of a round */
} exchange;

static void copy(void *context, int worker)
{
    exchange *x = context;
    for (int i = 0; i < ROUNDS; i++) {
        memset(x->own[worker], i, BYTES); /* as a kernel that has just written it */
        keel_team_meet(x->team);
        const double begin = keel_seconds();
        memcpy(x->shared[worker], x->own[worker], BYTES);
        keel_team_meet(x->team);
        memcpy(x->got[worker], x->shared[x->n - 1 - worker], BYTES);
        keel_team_meet(x->team);
        const double took = keel_seconds() - begin;
        if (worker == 0 && (x->best == 0 || took < x->best)) x->best = took;
    }
}

keel_status keel_copies_measure(double *rate, int core, int other)
{
    exchange x = { .n = core == other ? 1 : 2 };
    const int cores[2] = { core, other };
    keel_status s = KEEL_OK;
    for (int i = 0; i < x.n; i++) {
        x.own[i] = keel_aligned_calloc(BYTES, 1);
        x.shared[i] = keel_aligned_calloc(BYTES, 1);
        x.got[i] = keel_aligned_calloc(BYTES, 1);
        if (!x.own[i] || !x.shared[i] || !x.got[i]) s = KEEL_ENOMEM;
    }
    if (s >= 0) s = keel_team_create(&x.team, cores, x.n);
    if (s >= 0) {
        keel_team_enter(x.team);
        keel_team_run(x.team, copy, &x);
        keel_team_leave(x.team);
        *rate = REACHED * 2.0 * BYTES / (x.best > 1e-9 ? x.best : 1e-9);
    }
    keel_team_destroy(x.team);
    for (int i = 0; i < x.n; i++) {
        keel_free(x.own[i]);
        keel_free(x.shared[i]);
        keel_free(x.got[i]);
    }
    return s;
}
