/* A fit whose first process is lost at any exchange: of the others one writes the last checkpoint,
 * and a fit that goes on from it has the bits of one that never stopped. Processes are threads. */
#include "reproducible_works.h"
#include "sweep.h"
#include "thread_processes.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 3, EPOCHS = 3 };

static const recipe work = { "a small work", products, KEEL_FLOAT32, NULL, "adam",
                             KEEL_KEEP,      40,       16,           false };

typedef struct process {
    keel_process_group group;
    keel_dataset *data;
    outcome outcome;
    const char *folder;
    bool resume;
    double timeout; /* seconds */
    keel_status status;
    char error[1024];
} process;

static keel_status fit(process *p, keel_strategy *s)
{
    const keel_checkpoint_options c = { KEEL_CHECKPOINT_OPTIONS, .folder = p->folder,
                                        .every_steps = 1000, .resume = p->resume };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = work.batch_size, .epochs = EPOCHS,
                                 .checkpoint = p->folder ? &c : NULL };
    keel_status st = keel_strategy_reproducible(s, work.shards);
    if (st >= 0) st = keel_fit(p->outcome.model, s, p->data, &o, &p->outcome.history);
    if (st < 0) snprintf(p->error, sizeof p->error, "%s", keel_error());
    return st;
}

static void *live(void *context)
{
    process *p = context;
    keel_strategy *s = NULL;
    p->group.timeout = p->timeout;
    p->status = open_lanes(&s, &p->group, 1, 1);
    if (s) s->comm->bucket_bytes = 0; /* as many exchanges in each run */
    if (p->status >= 0) p->status = fit(p, s);
    keel_strategy_destroy(s);
    return NULL;
}

static void alone(process *p)
{
    keel_strategy *s;
    *p = (process){ .outcome.model = model_of(&work),
                    .data = rows_of(&work),
                    .folder = p->folder,
                    .resume = p->resume };
    must(keel_strategy_create(&s, "cpu:0"));
    must(fit(p, s));
    keel_strategy_destroy(s);
}

static void end(process *p)
{
    forget(&p->outcome);
    keel_dataset_destroy(p->data);
}

/* The entries of a folder; all of them are removed if `removes`. -1: there is no folder. */
static int entries(const char *folder, bool removes)
{
    int n = 0;
    char path[600];
    const struct dirent *e;
    DIR *d = opendir(folder);
    if (!d) return -1;
    while ((e = readdir(d))) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (removes) unlink(path);
        n++;
    }
    closedir(d);
    if (removes) rmdir(folder);
    return n;
}

/* The exchanges of a whole fit by process 0. Which of them falls silent at its k-th; 0: none. */
static int run(process *p, const char *const *folder, int k)
{
    thread_group group;
    thread_group_begin(&group, N);
    for (int i = 0; i < N; i++) {
        p[i] = (process){ .group = thread_group_of(&group, i),
                          .data = rows_of(&work),
                          .outcome.model = model_of(&work),
                          .folder = folder[i],
                          .timeout = k ? SLOW ? 2 : 0.25 : PATIENT };
    }
    group.member[0].mute_at = k;
    live_together(live, p, sizeof *p, N);
    const int all = group.member[0].exchanges;
    thread_group_end(&group);
    return all;
}

/* Process 0 is not gone here, and writes too; so it has another folder. */
static void one_of_the_others_writes_the_last_checkpoint(void **state)
{
    char first[300], others[300];
    process p[N], one = { 0 };
    int found = 0;
    (void)state, (void)compare, (void)run_on; /* of the works that other tests use */
    snprintf(first, sizeof first, "%s/first", getenv("KEEL_TEST_TMP"));
    snprintf(others, sizeof others, "%s/others", getenv("KEEL_TEST_TMP"));
    const char *const folders[N] = { first, others, others };
    alone(&one);
    const int all = run(p, folders, 0);
    for (int i = 0; i < N; i++) {
        if (p[i].status < 0) fail_msg("process %d: %s", i, p[i].error);
        compare_weights(&one.outcome, &p[i].outcome, &work, "a process");
        end(&p[i]);
    }
    assert_int_equal(entries(others, false), -1); /* the others write nothing if none is lost */
    entries(first, true);
    for (int k = all / 4; k < all; k += 1 + all / (SLOW ? 4 : 9)) {
        process next = { .folder = others, .resume = true };
        run(p, folders, k);
        const int64_t made = p[1].outcome.history.steps + p[2].outcome.history.steps;
        for (int i = 0; i < N; i++) {
            assert_int_equal(p[i].status, KEEL_EREMOTE);
            end(&p[i]);
        }
        entries(first, true);
        const int n = entries(others, false);
        if (made == 0) continue; /* it was lost before a step was made */
        /* two, if one of them got the votes of a step from process 0 and the other did not */
        if (n != 1 && n != 2) fail_msg("exchange %d of %d: %d checkpoints", k, all, n);
        found++;
        alone(&next);
        compare_weights(&one.outcome, &next.outcome, &work, "a fit that goes on");
        end(&next);
        entries(others, true);
    }
    assert_true(found > 1);
    end(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_the_others_writes_the_last_checkpoint),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
