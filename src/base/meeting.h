/* The barrier where the workers of a step wait for each other; it spins briefly, then sleeps. */
#ifndef KEEL_BASE_MEETING_H
#define KEEL_BASE_MEETING_H
#include "base/error.h"

typedef struct keel_meeting keel_meeting;

/* For n participants, n >= 1. spins: polls before sleeping (0: sleep at once). */
keel_status keel_meeting_create(keel_meeting **out, int n, int spins);
void keel_meeting_destroy(keel_meeting *m); /* after all have returned from wait; NULL is allowed */

/* Wait until all n participants have called this. All writes before it are visible to all after it.
 * With n = 1 it returns at once. No allocation; no system call unless a participant sleeps. */
void keel_meeting_wait(keel_meeting *m);

#endif
