/* Lanes on devices whose memory is not the host's: the bits of one device on any number of them,
 * the numbers of the host, and a failure of any call of a device, which fails the step and leaves
 * no trace; no wait between streams is missing, and none is there in vain. The devices are
 * stand-ins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>
#include "base/memory.h"
#include "reproducible_works.h"
#include "sweep.h"
#include "standin.h"
#include "train/strategy.h"

enum { DEVICES = 8 };

typedef struct machine {
    keel_device *device[DEVICES];
    keel_strategy *strategy;
    int n;
} machine;

static machine machine_of(const keel_device_type *type, int n)
{
    machine m = { .n = n };
    for (int i = 0; i < n; i++) m.device[i] = standin_open(type, i);
    must(keel_strategy_create_devices(&m.strategy, m.device, n));
    return m;
}

static void close_machine(machine *m)
{
    keel_strategy_destroy(m->strategy);
    for (int i = 0; i < m->n; i++) {
        const standin *s = standin_of(m->device[i]);
        assert_int_equal(s->allocations, 0);
        assert_int_equal(s->tapes, 0);
        if (s->clocks.reports > 0 && !s->ignore_at)
            fail_msg("%s: %s (%d such)", s->base.name, s->clocks.first, s->clocks.reports);
        m->device[i]->type->close(m->device[i]);
    }
}

/* What a fit on devices has left; of one on the host if type is NULL. */
static outcome run(const recipe *r, const keel_device_type *type, int devices)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    if (type) {
        machine m = machine_of(type, devices);
        must(run_on(&o, r, m.strategy, d));
        close_machine(&m);
    } else {
        keel_strategy *s;
        must(keel_strategy_create(&s, "cpu:0"));
        must(run_on(&o, r, s, d));
        keel_strategy_destroy(s);
    }
    keel_dataset_destroy(d);
    return o;
}

static void bits_are_those_of_one_device(void **unused)
{
    (void)unused;
    for (int i = 0; i < (int)(sizeof recipes / sizeof *recipes); i += thin(1, 2, 6)) {
        const bool stores = i / thin(1, 2, 6) % 2;
        const int n = 2 + i * 3 % (DEVICES - 1);
        char how[48];
        outcome one = run(&recipes[i], &standin_runs, 1);
        outcome many = run(&recipes[i], stores ? &standin_stores : &standin_runs, n);
        snprintf(how, sizeof how, "%d devices%s", n, stores ? " that only store" : "");
        compare(&one, &many, &recipes[i], how);
        forget(&many);
        forget(&one);
    }
}

/* ---- beside the host ------------------------------------------------------------------------- */

static double at(const keel_tensor *t, int64_t i)
{
    return t->dtype == KEEL_FLOAT64 ? ((const double *)t->data)[i] : ((const float *)t->data)[i];
}

/* Numbers that may be added in another order. */
static void numbers_are_those_of_the_host(void **unused)
{
    static const struct {
        const char *name;
        double most;
    } cases[] = { { "convolutions, rows again", 1e-9 }, /* in float64 */
                  { "products", 2e-4 },
                  { "a table", 2e-4 },
                  { "over time", 2e-4 },
                  { "attention", 2e-4 } };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const recipe *r = recipes;
        while (strcmp(r->name, cases[i].name)) r++;
        outcome host = run(r, NULL, 0), two = run(r, &standin_runs, 2);
        const int64_t count = keel_shape_count(&host.predicted.shape);
        for (int64_t k = 0; k < count; k++)
            if (fabs(at(&host.predicted, k) - at(&two.predicted, k)) > cases[i].most)
                fail_msg("%s: prediction %d is %.9g, the host's is %.9g", r->name, (int)k,
                         at(&two.predicted, k), at(&host.predicted, k));
        forget(&host);
        forget(&two);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The weights after so many steps. */
static outcome after(const recipe *r, int64_t steps)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    machine m = machine_of(&standin_runs, 1);
    const keel_callback ends = end_after(&steps);
    if (steps > 0) must(run_with(&o, r, m.strategy, d, KEEL_CALLBACKS(&ends)));
    close_machine(&m);
    keel_dataset_destroy(d);
    return o;
}

/* Where devices move no weights, for a step that one device fails has failed. */
static const keel_device_type *host_moves(const keel_device_type *of)
{
    static keel_device_type types[2];
    keel_device_type *type = &types[of == &standin_runs];
    *type = *of;
    type->move = NULL;
    return type;
}

static void a_failed_call_fails_its_step_alone(void **unused)
{
    enum { WHO = 1, STEPS_MOST = 64 };
    const int runs = thin(24, 12, 6);
    const recipe *r = &recipes[0];
    outcome known[STEPS_MOST] = { 0 };
    keel_dataset *d = rows_of(r);
    int calls = 0;
    (void)unused;
    for (int k = 0; k <= runs; k++) { /* the first has no failure, and counts the calls */
        outcome o = { .model = model_of(r) };
        machine m = machine_of(host_moves(k % 2 ? &standin_runs : &standin_stores), 3);
        standin *s = standin_of(m.device[WHO]);
        s->fail_at = k == 0 ? 0 : 1 + (int)((int64_t)(calls - 1) * (k - 1) / runs);
        const keel_status st = run_on(&o, r, m.strategy, d);
        if (k == 0) {
            assert_int_equal(st, KEEL_OK);
            calls = s->calls;
        } else if (s->calls >= s->fail_at) {
            const int64_t steps = keel_model_steps_done(o.model);
            assert_true(st == KEEL_EDEVICE || st == KEEL_ENOMEM);
            assert_non_null(strstr(keel_error(), "standin:1"));
            assert_true(steps < STEPS_MOST);
            if (!known[steps].model) known[steps] = after(r, steps);
            compare_weights(&known[steps], &o, r, "a failure");
        }
        close_machine(&m);
        forget(&o);
    }
    for (int i = 0; i < STEPS_MOST; i++)
        if (known[i].model) forget(&known[i]);
    keel_dataset_destroy(d);
}

/* Steps of one row have none for the second device, which takes part in them all the same. */
static void a_device_without_rows_that_fails_is_named(void **unused)
{
    const recipe *r = &recipes[0];
    keel_dataset *d = rows_of(r);
    int failed = 0;
    (void)unused;
    for (int k = 0, calls = 0; k <= calls; k++) { /* the first has no failure, and counts them */
        int64_t steps = 2;
        const keel_callback ends = end_after(&steps);
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 1,
                                           .callbacks = KEEL_CALLBACKS(&ends) };
        keel_model *model = model_of(r);
        machine m = machine_of(host_moves(&standin_runs), 2);
        standin *s = standin_of(m.device[1]);
        s->fail_at = k;
        if (keel_fit(model, m.strategy, d, &options, NULL) < 0) {
            failed++;
            if (!strstr(keel_error(), "standin:1")) fail_msg("call %d: %s", k, keel_error());
        }
        if (k == 0) calls = s->calls;
        close_machine(&m);
        keel_model_destroy(model);
    }
    assert_true(failed > 4);
    keel_dataset_destroy(d);
}

static void a_host_without_memory_leaks_nothing(void **unused)
{
    const int runs = thin(12, 8, 4);
    const recipe *r = &recipes[0];
    int64_t calls = 0;
    (void)unused;
    for (int k = 0; k <= runs; k++) { /* the first has no failure, and counts the requests */
        const int64_t live = keel_memory_live();
        outcome o = { .model = model_of(r) };
        keel_dataset *d = rows_of(r);
        machine m = machine_of(k % 2 ? &standin_runs : &standin_stores, 2);
        const int64_t before = keel_memory_calls();
        if (k > 0) keel_memory_fail_at(calls * (k - 1) / runs);
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size };
        const keel_status s = keel_fit(o.model, m.strategy, d, &options, NULL);
        keel_memory_fail_at(-1);
        if (k == 0) {
            assert_int_equal(s, KEEL_OK);
            calls = keel_memory_calls() - before;
        } else {
            assert_true(s == KEEL_OK || s == KEEL_ENOMEM);
        }
        close_machine(&m);
        keel_dataset_destroy(d);
        forget(&o);
        if (keel_memory_live() != live) fail_msg("run %d leaks", k);
    }
}

/* ---- waits ----------------------------------------------------------------------------------- */

static void a_missing_wait_is_reported_by_the_names_of_both(void **unused)
{
    static const struct {
        int left_out; /* 1: the stream's wait, 2: the host's */
        const char *report;
    } cases[] = {
        { 0, "" },
        { 1, "'a copy out' reads rows + 64, which 'a copy in' may still be writing" },
        { 2, "'the host' reads memory of the host, which 'a copy out' may still be writing" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_device *d = standin_open(&standin_stores, 0);
        char in[256] = { 1, 2, 3 }, out[256] = { 0 };
        void *at;
        standin_of(d)->ignore_at = cases[i].left_out;
        must(d->type->allocate(d, sizeof in, "rows", &at));
        d->type->copy_in(d, KEEL_COPY_IN_STREAM, at, in, sizeof in);
        d->type->record(d, KEEL_COPY_IN_STREAM, 3);
        d->type->wait(d, KEEL_COPY_OUT_STREAM, 3);
        d->type->copy_out(d, KEEL_COPY_OUT_STREAM, out, (char *)at + 64, 128);
        must(keel_device_reach(d, KEEL_COPY_OUT_STREAM));
        keel_device_touches(d, out, 1, false);
        assert_string_equal(standin_of(d)->clocks.first, cases[i].report);
        must(keel_device_finish(d));
        d->type->release(d, at);
        d->type->close(d);
    }
}

/* A fit of so many steps on two devices, the second of which leaves a wait out. Returns its waits.
 * *unseen: what waited, if nobody reports that; else NULL. */
static int waits_of(const recipe *r, const keel_device_type *type, int64_t steps, int ignore_at,
                    const char **unseen)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    machine m = machine_of(type, 2);
    standin *s = standin_of(m.device[1]);
    const keel_callback ends = end_after(&steps);
    s->ignore_at = ignore_at;
    must(run_with(&o, r, m.strategy, d, KEEL_CALLBACKS(&ends)));
    const int waits = s->waits;
    *unseen = s->clocks.reports > 0 ? NULL : s->ignored;
    close_machine(&m);
    keel_dataset_destroy(d);
    forget(&o);
    return waits;
}

enum { ALL = 0 }; /* 1: leave out each wait, which takes a minute */

static void no_wait_is_left_out_unseen(void **unused)
{
    static const char *const names[] = { "convolutions", "over time" };
    (void)unused;
    for (int i = 0; i < 4; i++) {
        const keel_device_type *type = i % 2 ? &standin_stores : &standin_runs;
        const recipe *r = recipes;
        const char *unseen;
        while (strcmp(r->name, names[i / 2])) r++;
        const int waits = waits_of(r, type, 3, 0, &unseen);
        assert_true(waits > 20);
        for (int k = 1; k <= waits; k += ALL ? 1 : 1 + waits / (SLOW ? 2 : 4)) {
            waits_of(r, type, 3, k, &unseen);
            if (unseen)
                fail_msg("%s%s: nobody sees that wait %d of %d is left out: of %s", r->name,
                         i % 2 ? ", on devices that only store" : "", k, waits, unseen);
        }
    }
}

/* The statistics of the first layer go back to devices for nobody but the one that makes the
 * gradients of the layer. */
static keel_symbol normalized_first(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "Flatten", NULL, must_call(m, "BatchNormalization", NULL, x));
    return dense(m, x, CLASSES, "softmax");
}

/* A step of one row follows, for which the third device has none, and waits for nothing. */
static void what_goes_to_a_device_has_come_when_its_step_ends(void **unused)
{
    static const recipe r = {
        "normalized first", normalized_first, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 37, 16, false
    };
    (void)unused;
    outcome one = run(&r, &standin_runs, 1);
    for (int stores = 0; stores < 2; stores++) {
        outcome three = run(&r, host_moves(stores ? &standin_stores : &standin_runs), 3);
        compare(&one, &three, &r, "three devices");
        forget(&three);
    }
    forget(&one);
}

/* A validation runs another program in the same memory, while rows of the batch that never comes
 * are on their way. */
static outcome ended_early(const keel_device_type *type, int devices, int64_t threads)
{
    const recipe *r = &recipes[0];
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    machine m = machine_of(type, devices);
    int64_t steps = 2;
    const keel_callback ends = end_after(&steps);
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size,
                                       .validation = d, .threads = threads,
                                       .callbacks = KEEL_CALLBACKS(&ends) };
    must(keel_strategy_reproducible(m.strategy, r->shards));
    must(keel_fit(o.model, m.strategy, d, &options, &o.history));
    assert_int_equal(o.history.steps, 2);
    close_machine(&m);
    keel_dataset_destroy(d);
    return o;
}

static void rows_that_never_come_are_dropped(void **unused)
{
    (void)unused;
    for (int i = 0; i < 4; i++) {
        outcome one = ended_early(&standin_runs, 1, 0);
        outcome more = ended_early(i % 2 ? &standin_stores : &standin_runs, 1 + i, i / 2);
        compare_weights(&one, &more, &recipes[0], "a fit that ended early");
        assert_int_equal(one.history.count, more.history.count);
        assert_memory_equal(one.history.value, more.history.value,
                            (size_t)(one.history.epochs * one.history.count) *
                                sizeof *one.history.value);
        forget(&one);
        forget(&more);
    }
}

/* ---- before step 1 --------------------------------------------------------------------------- */

typedef struct told {
    int lines;
    char line[4][400];
} told;

static void tell(void *context, const char *line)
{
    told *t = context;
    if (t->lines < 4) snprintf(t->line[t->lines], sizeof *t->line, "%s", line);
    t->lines++;
}

/* Each device has so much memory, and the host locks none of its own. */
static keel_status fit_once(const keel_device_type *type, int64_t memory, bool locks, told *t,
                            keel_history *h, keel_plan *p)
{
    const recipe *r = &recipes[0];
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size,
                                       .explain_devices = tell, .explain_devices_context = t };
    keel_model *model = model_of(r);
    keel_dataset *d = rows_of(r);
    machine m = machine_of(type, 2);
    for (int i = 0; i < 2; i++) {
        m.device[i]->memory = memory;
        standin_of(m.device[i])->locks_nothing = !locks;
    }
    must(keel_plan_make(p, model, m.strategy, 100, r->batch_size, KEEL_KEEP, NULL));
    const keel_status s = keel_fit(model, m.strategy, d, &options, h);
    close_machine(&m);
    keel_dataset_destroy(d);
    keel_model_destroy(model);
    return s;
}

static void what_is_staged_is_told_before_step_1(void **unused)
{
    static const struct {
        const keel_device_type *type;
        bool locks;
        int lines;
    } cases[] = { { &standin_runs, true, 0 },
                  { &standin_stores, true, 1 },
                  { &standin_stores, false, 2 } };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        told t = { 0 };
        keel_history h = { 0 };
        keel_plan p = { 0 };
        must(fit_once(cases[i].type, STANDIN_SPACE, cases[i].locks, &t, &h, &p));
        assert_int_equal(t.lines, cases[i].lines);
        if (t.lines > 0) {
            static const char begin[] = "runs staged through the host: ";
            assert_memory_equal(t.line[0], begin, sizeof begin - 1);
            assert_string_equal(t.line[0] + sizeof begin - 1, p.staged);
            assert_non_null(strstr(p.staged, "conv2d"));
        } else
            assert_null(p.staged);
        if (t.lines > 1) assert_non_null(strstr(t.line[1], "no page-locked memory for"));
        keel_history_free(&h);
        keel_plan_free(&p);
    }
}

static void a_fit_that_a_device_has_no_room_for_is_refused(void **unused)
{
    told t = { 0 };
    keel_history h = { 0 };
    keel_plan p = { 0 };
    (void)unused;
    must(fit_once(&standin_runs, STANDIN_SPACE, true, &t, &h, &p));
    const int64_t needs = h.device_memory;
    assert_true(p.device_bytes[0] > 0 && p.device_bytes[1] == p.device_bytes[0]);
    assert_true(p.device_bytes[0] == needs);
    assert_true(p.device_memory[0] == STANDIN_SPACE);
    keel_history_free(&h);
    keel_plan_free(&p);
    must(fit_once(&standin_runs, needs, true, &t, &h, &p));
    keel_history_free(&h);
    keel_plan_free(&p);
    assert_int_equal(fit_once(&standin_runs, needs - 1, true, &t, &h, &p), KEEL_ENOMEM);
    assert_int_equal(h.steps, 0);
    assert_non_null(strstr(keel_error(), "standin:0 has"));
    assert_non_null(strstr(keel_error(), "for gradients"));
    assert_non_null(strstr(keel_error(), "use --recompute, smaller batches or more devices"));
    keel_history_free(&h);
    keel_plan_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_one_device),
        cmocka_unit_test(numbers_are_those_of_the_host),
        cmocka_unit_test(a_failed_call_fails_its_step_alone),
        cmocka_unit_test(a_device_without_rows_that_fails_is_named),
        cmocka_unit_test(a_host_without_memory_leaks_nothing),
        cmocka_unit_test(a_missing_wait_is_reported_by_the_names_of_both),
        cmocka_unit_test(no_wait_is_left_out_unseen),
        cmocka_unit_test(what_goes_to_a_device_has_come_when_its_step_ends),
        cmocka_unit_test(rows_that_never_come_are_dropped),
        cmocka_unit_test(what_is_staged_is_told_before_step_1),
        cmocka_unit_test(a_fit_that_a_device_has_no_room_for_is_refused),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
