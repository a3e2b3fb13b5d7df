/* The threads of one run of a pipeline. Tasks never wait for one another; a thread that needs a
 * result can run others meanwhile; in a pool without threads it does. Where tasks follow one
 * another without end it should not: with as many threads as cores it is one too many, so that two
 * of them share a core, and while it is in a task nobody gives the threads new ones. */
#ifndef KEEL_DATA_POOL_H
#define KEEL_DATA_POOL_H
#include "base/account.h"
#include "base/error.h"
#include <stdbool.h>

typedef struct keel_pool keel_pool;
struct keel_scratch;
struct keel_work;

struct keel_probe;

typedef struct keel_task {
    void (*run)(struct keel_task *t, struct keel_scratch *scratch); /* scratch: of its thread */
    int work;                                                       /* its kind, for probes */
    bool done;                                                      /* guarded by the pool */
    struct keel_probe *by;                                          /* of the thread that runs it */
    struct keel_task *next;
} keel_task;

/* helps: who waits runs tasks. work, account: of what the tasks do; may be NULL. KEEL_ENOMEM: no
 * memory, or not one of the threads could be started (fewer are accepted). */
keel_status keel_pool_create(keel_pool **out, int n_threads, bool helps, struct keel_work *work,
                             keel_account *account);
void keel_pool_destroy(keel_pool *p); /* all tasks are done; NULL is allowed */
int keel_pool_threads(const keel_pool *p);
/* The trails of its threads; the last one is of who waits for tasks. */
struct keel_trail *keel_pool_trails(keel_pool *p, int *n);
int keel_pool_used(const keel_pool *p); /* of which so many work */
/* Let so many of the threads work, 1 or more; the others sleep. */
void keel_pool_use(keel_pool *p, int n_threads);
/* Wait until no task runs, and free the buffers of all threads; for the caller, outside of tasks.
 */
void keel_pool_let_go(keel_pool *p);
const struct keel_scratch *keel_pool_scratch(const keel_pool *p); /* of the caller */
/* Threads to read with where nobody says how many: one for each core of this process, 1 to 16. */
int keel_reading_threads(void);

void keel_pool_add(keel_pool *p, keel_task *t); /* the task stays the caller's */
/* stage: what the task belongs to, to be blamed if the caller waits. */
void keel_pool_wait(keel_pool *p, keel_task *t, const void *stage);

#endif
