/* Where the workers of a step wait for each other: a barrier that spins briefly and then sleeps. */
#ifndef KEEL_BASE_MEETING_H
#define KEEL_BASE_MEETING_H
#include "base/error.h"

typedef struct keel_meeting keel_meeting;

/* For n participants, n >= 1. spins: how many times to look before sleeping (0: sleep at once). */
keel_status keel_meeting_create(keel_meeting **out, int n, int spins);
void keel_meeting_destroy(keel_meeting *m); /* all have returned from it; NULL is fine */

/* Wait until all n have called this; what each wrote before it, all see after it. With n = 1 it
 * returns at once. No allocation; no system call unless somebody slept. */
void keel_meeting_wait(keel_meeting *m);

#endif
