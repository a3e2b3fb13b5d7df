/* A team of workers: threads bound to cores, which run a step together. The calling thread is
 * worker 0, so a step needs no hand-over to another thread; between steps the other workers spin
 * briefly, then sleep. */
#ifndef KEEL_DEVICE_TEAM_H
#define KEEL_DEVICE_TEAM_H
#include "base/error.h"

typedef struct keel_team keel_team;

/* Polls, about 50 us, before one of n workers sleeps. 0 where there are fewer processors: nobody
 * may spin there, or the awaited worker could not run. A system call. */
int keel_team_spins(int n);

/* n workers on the given cores (operating system's numbers), n >= 1; n - 1 threads are started. */
keel_status keel_team_create(keel_team **out, const int *core, int n);
void keel_team_destroy(keel_team *t); /* joins the threads; NULL is allowed */
int keel_team_size(const keel_team *t);

/* Bind the calling thread to worker 0's core and limit vendor libraries to one thread in it;
 * keel_team_leave restores both. Call it around a whole fit, not around a step. */
void keel_team_enter(keel_team *t);
void keel_team_leave(keel_team *t);

/* Run work(context, worker) on every worker and wait for all. One caller at a time. */
void keel_team_run(keel_team *t, void (*work)(void *context, int worker), void *context);

/* Inside `work`: wait until every worker is here. All writes before it are visible to all after. */
void keel_team_meet(keel_team *t);

#endif
