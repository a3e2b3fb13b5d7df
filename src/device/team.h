/* A team of workers: threads bound to cores that run a step together. The calling thread is worker
 * 0 while a step runs, so a step costs no hand-over; between steps the others spin briefly and
 * sleep. */
#ifndef KEEL_DEVICE_TEAM_H
#define KEEL_DEVICE_TEAM_H
#include "base/error.h"

typedef struct keel_team keel_team;

/* n workers on the given cores (operating system's numbers), n >= 1; n - 1 threads are started. */
keel_status keel_team_create(keel_team **out, const int *core, int n);
void keel_team_destroy(keel_team *t); /* joins the threads; NULL is fine */
int keel_team_size(const keel_team *t);

/* Bind the calling thread to worker 0's core and keep vendor libraries to one thread in it, until
 * leave restores both. Around a whole fit, not around a step. */
void keel_team_enter(keel_team *t);
void keel_team_leave(keel_team *t);

/* Run work(context, worker) on every worker; returns when all have returned. One caller at a time.
 */
void keel_team_run(keel_team *t, void (*work)(void *context, int worker), void *context);

/* Inside work: wait until every worker is here; what each wrote before, all see after. */
void keel_team_meet(keel_team *t);

#endif
