/* Processes that run a work together, as threads of one program. */
#ifndef KEEL_TESTS_PROCESS_WORKS_H
#define KEEL_TESTS_PROCESS_WORKS_H
#include "reproducible_works.h"
#include "sweep.h"
#include "thread_processes.h"

/* One process: it opens `lanes` devices and runs the work. */
typedef struct process {
    const recipe *recipe;
    keel_process_group group;
    keel_dataset *data;
    outcome outcome;
    int lanes, workers;
    double timeout; /* seconds */
    bool measured;  /* buckets of gradients as large as was measured; else as many as can be */
    keel_status (*run)(struct process *p, keel_strategy *s, const keel_callback *const *callbacks);
    int64_t fails_at; /* its callback fails after this step, from 1; 0: never */
    int64_t stops_at; /* the same, but it stops the fit */
    bool stops_early; /* it stops the fit when the epoch begins */
    keel_status status;
    char error[1024];
} process;

static keel_status step_ended(void *context, const keel_moment *at)
{
    const process *p = context;
    if (at->step == p->stops_at) return KEEL_END;
    if (at->step != p->fails_at) return KEEL_OK;
    return keel_error_set(KEEL_ECALLBACK, "the test ends it");
}

static keel_status epoch_begun(void *context, const keel_moment *at)
{
    (void)at;
    return ((const process *)context)->stops_early ? KEEL_END : KEEL_OK;
}

static void *live(void *context)
{
    process *p = context;
    keel_strategy *s = NULL;
    p->group.timeout = p->timeout;
    p->status = open_lanes(&s, &p->group, p->lanes, p->workers);
    if (s && s->comm && !p->measured) s->comm->bucket_bytes = 0;
    const keel_callback callback = { KEEL_CALLBACK, .on_train_batch_end = step_ended,
                                     .on_epoch_begin = epoch_begun, .context = p };
    if (p->status >= 0)
        p->status = p->run
                        ? p->run(p, s, KEEL_CALLBACKS(&callback))
                        : run_with(&p->outcome, p->recipe, s, p->data, KEEL_CALLBACKS(&callback));
    if (p->status < 0) snprintf(p->error, sizeof p->error, "%s", keel_error());
    keel_strategy_destroy(s);
    return NULL;
}

static inline void run_all(process *p, int n)
{
    live_together(live, p, sizeof *p, n);
}

#endif
