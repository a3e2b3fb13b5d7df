/* Work that threads share as they come: phases one behind the other, each of so many turns, which
 * whoever is there takes one by one. Nobody is waited for who does not come, and who comes late
 * takes part from then on. So the threads need not be known, nor be equally fast. */
#ifndef KEEL_BASE_CREW_H
#define KEEL_BASE_CREW_H
#include "base/error.h"

typedef struct keel_crew keel_crew;

/* At most `places` threads work at a time, others only wait. spins: polls before a thread that
 * waits sleeps (0: at once). */
keel_status keel_crew_create(keel_crew **out, int places, int spins);
void keel_crew_destroy(keel_crew *c); /* when all have returned from work; NULL is allowed */

/* New work of n phases; turn [n] stays the caller's. Nobody is in the last work any more, and who
 * comes to this one sees what was written before. */
void keel_crew_begin(keel_crew *c, const int *turn, int n);

/* Takes part until all turns of all phases are over. Calls run(context, phase, turn, place): each
 * turn once, those of a phase at the same time, and a phase when the one before it is over. All
 * writes of a phase are visible to the next, and to who returns. place: of this thread, below
 * `places`. No allocation; no system call unless a thread sleeps. */
void keel_crew_work(keel_crew *c, void (*run)(void *context, int phase, int turn, int place),
                    void *context);

#endif
