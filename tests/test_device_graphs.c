/* Devices that replay what they have captured (graph/on_device_graphs.c), and devices that never
 * answer: on stand-ins. Graphs are made before step 1 and change no bit, a missing wait is seen
 * within them as well, and what cannot be captured is not. What never ends, ends the fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>
#include "reproducible_works.h"
#include "sweep.h"
#include "standin.h"
#include "train/strategy.h"

enum { DEVICES = 3, STEPS = 3 };

typedef struct fitting {
    keel_device *device[DEVICES];
    keel_strategy *strategy;
    int n, hang_after; /* steps; 0: none */
    int64_t steps, captures;
} fitting;

static keel_status on_batch_end(void *context, const keel_moment *now)
{
    fitting *f = context;
    int64_t captures = 0;
    (void)now;
    for (int i = 0; i < f->n; i++) captures += standin_of(f->device[i])->captures;
    if (f->steps++ == 0) f->captures = captures;
    if (captures != f->captures) fail_msg("graphs are made in step %d", (int)f->steps);
    if (f->steps == f->hang_after) {
        standin *s = standin_of(f->device[f->n - 1]);
        s->hang_at = s->given + 5;
    }
    return KEEL_OK;
}

static void open_all(fitting *f, const keel_device_type *type)
{
    for (int i = 0; i < f->n; i++) f->device[i] = standin_open(type, i);
    must(keel_strategy_create_devices(&f->strategy, f->device, f->n));
}

static void close_all(fitting *f)
{
    keel_strategy_destroy(f->strategy);
    for (int i = 0; i < f->n; i++) {
        const standin *s = standin_of(f->device[i]);
        assert_int_equal(s->allocations, 0);
        assert_int_equal(s->tapes, 0);
        if (s->clocks.reports > 0) fail_msg("%s: %s", s->base.name, s->clocks.first);
        f->device[i]->type->close(f->device[i]);
    }
}

static outcome run(const recipe *r, int n, bool no_graphs, bool refuses, int *replays)
{
    fitting f = { .n = n };
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    const keel_callback counts = { KEEL_CALLBACK, .on_train_batch_end = on_batch_end,
                                   .context = &f };
    const keel_fit_options options = { KEEL_FIT_OPTIONS,
                                       .batch_size = r->batch_size,
                                       .epochs = 2,
                                       .end = r->end,
                                       .no_graphs = no_graphs,
                                       .validation = d,
                                       .callbacks = KEEL_CALLBACKS(&counts) };
    open_all(&f, &standin_runs);
    for (int i = 0; i < n; i++) standin_of(f.device[i])->refuses_tapes = refuses;
    must(keel_strategy_reproducible(f.strategy, r->shards));
    must(keel_fit(o.model, f.strategy, d, &options, &o.history));
    *replays = standin_of(f.device[0])->replays;
    const keel_fit_options later = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size, .end = r->end,
                                     .no_graphs = no_graphs };
    must(keel_evaluate(o.model, f.strategy, d, &later, &o.logs));
    must(keel_predict(o.model, f.strategy, d, &later, &o.predicted));
    close_all(&f);
    keel_dataset_destroy(d);
    return o;
}

static void graphs_of_before_step_1_change_no_bit(void **unused)
{
    (void)unused;
    for (int i = 0; i < (int)(sizeof recipes / sizeof *recipes); i += thin(1, 3, 5)) {
        int replays, none, n = 1 + i % DEVICES;
        outcome plain = run(&recipes[i], n, true, false, &none);
        outcome graphs = run(&recipes[i], n, false, false, &replays);
        assert_int_equal(none, 0);
        if (replays < graphs.history.steps) fail_msg("%s: %d replays", recipes[i].name, replays);
        compare(&plain, &graphs, &recipes[i], "graphs");
        forget(&plain);
        forget(&graphs);
    }
}

static void a_device_that_has_no_graph_of_them_says_so(void **unused)
{
    const recipe *r = recipe_of("convolutions");
    int replays, none;
    (void)unused;
    outcome plain = run(r, 2, false, true, &none), graphs = run(r, 2, false, false, &replays);
    assert_int_equal(none, 0);
    assert_non_null(plain.history.note);
    assert_non_null(strstr(plain.history.note, "standin:1 is given each call by itself, which is "
                                               "slower for small ones, since the test refuses"));
    compare(&plain, &graphs, r, "no graphs");
    forget(&plain);
    forget(&graphs);
}

/* ---- what a graph is ------------------------------------------------------------------------- */

static void a_replay_is_checked_as_the_calls_are(void **unused)
{
    char host[256] = { 7 }, out[256] = { 0 };
    void *at, *graph, *locked;
    (void)unused;
    for (int waits = 0; waits < 2; waits++) {
        keel_device *d = standin_open(&standin_runs, 0);
        const keel_device_type *t = d->type;
        must(t->allocate(d, sizeof host, "rows", &at));
        must(t->allocate_host(d, sizeof host, &locked));
        must(t->capture_begin(d));
        t->copy_out(d, KEEL_COMPUTE_STREAM, locked, at, sizeof host);
        must(t->capture_end(d, &graph));
        assert_int_equal(((char *)locked)[0], 0); /* not done yet */
        for (int k = 0; k < 2; k++) {
            host[0] = (char)(7 + k);
            t->copy_in(d, KEEL_COPY_IN_STREAM, at, host, sizeof host);
            t->record(d, KEEL_COPY_IN_STREAM, 1);
            if (waits) t->wait(d, KEEL_COMPUTE_STREAM, 1);
            t->replay(d, graph);
            must(keel_device_finish(d));
            if (waits) assert_int_equal(((char *)locked)[0], 7 + k);
        }
        assert_string_equal(standin_of(d)->clocks.first,
                            waits ? ""
                                  : "'a copy out' reads rows + 0, which 'a copy in' may still be "
                                    "writing");
        t->forget(d, graph);
        t->release(d, at);
        t->release_host(d, locked);
        t->close(d);
    }
    (void)out;
}

enum { COPIES_OTHER_MEMORY, WAITS, RECORDS, ALLOCATES, ANOTHER_STREAM, WRONG };

/* In a process of its own, which the stand-in ends. */
static void do_wrong(int what)
{
    keel_device *d = standin_open(&standin_runs, 0);
    const keel_device_type *t = d->type;
    char host[64] = { 0 };
    void *at, *other;
    must(t->allocate(d, 64, "rows", &at));
    must(t->capture_begin(d));
    if (what == COPIES_OTHER_MEMORY) t->copy_out(d, KEEL_COMPUTE_STREAM, host, at, 64);
    if (what == WAITS) (void)keel_device_reach(d, KEEL_COMPUTE_STREAM);
    if (what == RECORDS) t->record(d, KEEL_COMPUTE_STREAM, 1);
    if (what == ALLOCATES) (void)t->allocate(d, 64, "more", &other);
    if (what == ANOTHER_STREAM) t->copy_out(d, KEEL_COPY_OUT_STREAM, host, at, 64);
}

static void what_no_graph_may_have_ends_the_program(void **unused)
{
    (void)unused;
    for (int what = 0; what <= WRONG; what++) {
        int status;
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            signal(SIGABRT, SIG_DFL);
            if (!freopen("/dev/null", "w", stderr)) _exit(2);
            do_wrong(what);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (what == WRONG)
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        else if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
            fail_msg("wrong call %d is not found", what);
    }
}

/* ---- devices that never answer --------------------------------------------------------------- */

/* `hangs`: the last device, after so many steps; else the fit ends there. */
static outcome after(const recipe *r, int n, int steps, bool hangs)
{
    fitting f = { .n = n, .hang_after = hangs ? steps : 0 };
    outcome o = { .model = model_of(r) };
    keel_device_type type = standin_runs;
    keel_dataset *d = rows_of(r);
    const keel_callback counts = { KEEL_CALLBACK, .on_train_batch_end = on_batch_end,
                                   .context = &f };
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size,
                                       .steps_per_epoch = hangs ? 0 : steps,
                                       .callbacks = KEEL_CALLBACKS(&counts) };
    char name[64];
    type.move = NULL; /* the host moves, so it has the last step */
    open_all(&f, &type);
    snprintf(name, sizeof name, "standin:%d has not answered for 0.3 seconds", n - 1);
    if (hangs) must(keel_strategy_timeout(f.strategy, 0.3));
    must(keel_strategy_reproducible(f.strategy, r->shards));
    const keel_status s = keel_fit(o.model, f.strategy, d, &options, &o.history);
    assert_int_equal(s, hangs ? KEEL_EDEVICE : KEEL_OK);
    if (hangs && !strstr(keel_error(), name)) fail_msg("'%s' is not '%s'", keel_error(), name);
    close_all(&f);
    keel_dataset_destroy(d);
    return o;
}

static void a_device_that_never_answers_ends_the_fit_with_the_last_step(void **unused)
{
    const recipe *r = recipe_of("convolutions");
    (void)unused;
    for (int n = 1; n <= DEVICES; n++) {
        outcome hung = after(r, n, 2, true), ended = after(r, n, 2, false);
        assert_int_equal(keel_model_steps_done(hung.model), 2);
        compare_weights(&ended, &hung, r, "a device that never answers");
        forget(&hung);
        forget(&ended);
    }
}

/* ---- graphs of a step ------------------------------------------------------------------------ */

/* Batches of other numbers of rows each time, which nobody knows before. */
static keel_status yields(void *context, void *x, void *y, float *weight, int64_t capacity,
                          int64_t *rows)
{
    static const int sizes[] = { 7, 5, 8, 6 };
    int *at = context, first = 0;
    (void)weight, (void)capacity;
    if (*at == sizeof sizes / sizeof *sizes) return KEEL_END;
    for (int i = 0; i < *at; i++) first += sizes[i];
    *rows = sizes[(*at)++];
    memcpy(x, images + first * SIDE * SIDE * 3, (size_t)*rows * SIDE * SIDE * 3 * sizeof *images);
    memcpy(y, labels + first, (size_t)*rows * sizeof *labels);
    return KEEL_OK;
}

/* Ends after so many steps; -1: goes on. *calls: of the second device. */
static keel_status fit_on_yields(outcome *o, int64_t steps, int fail_at, int *calls)
{
    int at = 0;
    const keel_generator g = { .size = sizeof g,
                               .context = &at,
                               .x_shape = { 3, { SIDE, SIDE, 3 } },
                               .y_shape = { 0 },
                               .has_y = true,
                               .max_rows = 8,
                               .next = yields };
    const keel_callback ends = end_after(&steps);
    const keel_fit_options options = { KEEL_FIT_OPTIONS,
                                       .callbacks = steps > 0 ? KEEL_CALLBACKS(&ends) : NULL };
    keel_device_type type = standin_runs;
    fitting f = { .n = 2 };
    keel_dataset *d;
    type.move = NULL; /* the host moves, so it has the last step */
    *o = (outcome){ .model = model_of(recipe_of("products")) };
    must(keel_dataset_from_generator(&d, &g));
    open_all(&f, &type);
    standin_of(f.device[1])->fail_at = fail_at;
    must(keel_strategy_reproducible(f.strategy, 16));
    const keel_status s = keel_fit(o->model, f.strategy, d, &options, &o->history);
    *calls = standin_of(f.device[1])->calls;
    close_all(&f);
    keel_dataset_destroy(d);
    return s;
}

/* What has failed before is not taken for a failure of the graph, which would be of no use. */
static void a_failure_before_a_step_makes_its_graphs_fails_the_step(void **unused)
{
    enum { STEPS_MOST = 5 };
    const recipe *r = recipe_of("products");
    outcome known[STEPS_MOST] = { 0 };
    int all, calls;
    (void)unused;
    for (int k = 0; k < STEPS_MOST; k++)
        if (k > 0)
            must(fit_on_yields(&known[k], k, 0, &all));
        else
            known[0] = (outcome){ .model = model_of(r) };
    for (int k = 1; k <= all; k += thin(1, 1, 5)) {
        char how[64];
        outcome o;
        const keel_status s = fit_on_yields(&o, -1, k, &calls);
        const int64_t steps = keel_model_steps_done(o.model);
        snprintf(how, sizeof how, "call %d of %d, which fails", k, all);
        if (s >= 0 && steps != STEPS_MOST - 1) fail_msg("%s: %d steps", how, (int)steps);
        compare_weights(&known[steps], &o, r, how);
        forget(&o);
    }
    for (int k = 0; k < STEPS_MOST; k++) forget(&known[k]);
}

/* ---- before the first step ------------------------------------------------------------------- */

static void tell(void *context, const char *line)
{
    snprintf(context, 400, "%s", line);
}

static void evaluate_and_predict_name_what_is_staged(void **unused)
{
    const recipe *r = recipe_of("convolutions");
    (void)unused;
    for (int predicts = 0; predicts < 2; predicts++) {
        char line[400] = "";
        outcome o = { .model = model_of(r) };
        keel_dataset *d = rows_of(r);
        keel_device *device = standin_open(&standin_stores, 0);
        keel_strategy *s;
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size,
                                           .explain_devices = tell,
                                           .explain_devices_context = line };
        must(keel_strategy_create_devices(&s, &device, 1));
        if (predicts)
            must(keel_predict(o.model, s, d, &options, &o.predicted));
        else
            must(keel_evaluate(o.model, s, d, &options, &o.logs));
        assert_non_null(strstr(line, "runs staged through the host: "));
        assert_non_null(strstr(line, "conv2d"));
        keel_strategy_destroy(s);
        device->type->close(device);
        keel_dataset_destroy(d);
        forget(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_of_before_step_1_change_no_bit),
        cmocka_unit_test(a_device_that_has_no_graph_of_them_says_so),
        cmocka_unit_test(a_replay_is_checked_as_the_calls_are),
        cmocka_unit_test(what_no_graph_may_have_ends_the_program),
        cmocka_unit_test(a_device_that_never_answers_ends_the_fit_with_the_last_step),
        cmocka_unit_test(a_failure_before_a_step_makes_its_graphs_fails_the_step),
        cmocka_unit_test(evaluate_and_predict_name_what_is_staged),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
