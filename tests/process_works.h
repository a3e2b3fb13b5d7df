/* Processes that run a work together, as threads of one program. */
#ifndef KEEL_TESTS_PROCESS_WORKS_H
#define KEEL_TESTS_PROCESS_WORKS_H
#include "reproducible_works.h"
#include "thread_group.h"
#include "device/discover.h"
#include "train/strategy.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif

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

static void *live(void *context)
{
    process *p = context;
    keel_strategy *s = NULL;
    keel_cores real, cores = { .n = p->workers };
    char devices[32];
    p->status = keel_cores_find(&real);
    p->group.timeout = p->timeout;
    for (int i = 0; i < p->workers; i++) cores.os[i] = real.os[i % real.n];
    snprintf(devices, sizeof devices, p->lanes == 1 ? "cpu:0" : "cpu:0-%d", p->lanes - 1);
    if (p->status >= 0) p->status = keel_strategy_create_group_on(&s, devices, &p->group, &cores);
    if (s && s->comm && !p->measured) s->comm->bucket_bytes = 0;
    const keel_callback callback = { KEEL_CALLBACK, .on_train_batch_end = step_ended,
                                     .context = p };
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
    pthread_t thread[THREADS_MAX];
    for (int i = 1; i < n; i++) assert_int_equal(pthread_create(&thread[i], NULL, live, &p[i]), 0);
    live(&p[0]);
    for (int i = 1; i < n; i++) pthread_join(thread[i], NULL);
}

#endif
