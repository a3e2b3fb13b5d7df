/* Several processes have the bits of one: weights, the optimizer's state, BatchNorm's statistics,
 * logs and predictions, for any number of processes and lanes. Processes are threads here. */
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
    keel_status status;
    char error[1024];
} process;

static void *live(void *context)
{
    process *p = context;
    keel_strategy *s = NULL;
    keel_cores real, cores = { .n = p->workers };
    char devices[32];
    p->status = keel_cores_find(&real);
    for (int i = 0; i < p->workers; i++) cores.os[i] = real.os[i % real.n];
    snprintf(devices, sizeof devices, p->lanes == 1 ? "cpu:0" : "cpu:0-%d", p->lanes - 1);
    if (p->status >= 0)
        p->status = keel_strategy_create_group_on(&s, devices, &p->group, &cores);
    if (p->status >= 0) p->status = keel_strategy_timeout(s, SLOW ? 60 : 20);
    if (p->status >= 0) p->status = run_on(&p->outcome, p->recipe, s, p->data);
    if (p->status < 0) snprintf(p->error, sizeof p->error, "%s", keel_error());
    keel_strategy_destroy(s);
    return NULL;
}

static void run_all(process *p, int n)
{
    pthread_t thread[THREADS_MAX];
    for (int i = 1; i < n; i++) assert_int_equal(pthread_create(&thread[i], NULL, live, &p[i]), 0);
    live(&p[0]);
    for (int i = 1; i < n; i++) pthread_join(thread[i], NULL);
}

/* Process i has lanes[i] lanes. */
static void runs_as_one(const recipe *r, const outcome *one, int n, const int *lanes, int workers)
{
    thread_group group;
    process p[THREADS_MAX] = { { 0 } };
    char how[64];
    thread_group_begin(&group, n);
    for (int i = 0; i < n; i++) {
        p[i] = (process){ .recipe = r,
                          .group = thread_group_of(&group, i),
                          .data = rows_of(r),
                          .outcome.model = model_of(r),
                          .lanes = lanes[i],
                          .workers = workers < lanes[i] ? workers : lanes[i] };
    }
    run_all(p, n);
    for (int i = 0; i < n; i++) {
        if (p[i].status < 0)
            fail_msg("%s, %d processes, process %d: %s", r->name, n, i, p[i].error);
        snprintf(how, sizeof how, "process %d of %d with %d lanes", i, n, lanes[i]);
        compare(one, &p[i].outcome, r, how);
        assert_true(group.member[i].closed);
    }
    for (int i = 0; i < n; i++) {
        forget(&p[i].outcome);
        keel_dataset_destroy(p[i].data);
    }
    thread_group_end(&group);
}

static void bits_are_those_of_one_process(void **unused)
{
    static const int counts[] = { 2, 3, 4, 7, 8 };
    (void)unused;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const recipe *r = &recipes[i];
        outcome one = { .model = model_of(r) };
        keel_dataset *d = rows_of(r);
        keel_strategy *s;
        must(keel_strategy_create(&s, "cpu:0"));
        must(run_on(&one, r, s, d));
        for (size_t c = 0; c < 5; c++) {
            int lanes[THREADS_MAX], all = 0;
            if (i > 0 && (c + i) % (SLOW ? 5 : 2)) continue;
            for (int k = 0; k < counts[c]; k++)
                all += lanes[k] = 1 + (int)(k + c + i) % (counts[c] > 4 ? 2 : 4);
            if (all > r->shards) continue;
            runs_as_one(r, &one, counts[c], lanes, 1 + (int)(i + c) % 2);
        }
        keel_strategy_destroy(s);
        keel_dataset_destroy(d);
        forget(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_one_process),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
