/* Devices that add up their gradients themselves: the numbers of the host's sums; the host's where
 * bits are promised or a device has no rows; and a device that fails or never answers ends its
 * step, and no other waits for it for ever. The devices are stand-ins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>
#include "reproducible_works.h"
#include "sweep.h"
#include "standin.h"
#include "train/strategy.h"

enum { MOST = 4 };

typedef struct machine {
    keel_device *device[MOST];
    keel_strategy *strategy;
    int n;
} machine;

static machine machine_of(const keel_device_type *type, int n, const char *beside)
{
    machine m = { .n = n };
    for (int i = 0; i < n; i++) m.device[i] = standin_open(type, i);
    must(keel_strategy_create_beside(&m.strategy, m.device, n, beside));
    return m;
}

static void close_machine(machine *m)
{
    keel_strategy_destroy(m->strategy);
    for (int i = 0; i < m->n; i++) {
        const standin *s = standin_of(m->device[i]);
        if (!s->lost) assert_int_equal(s->allocations, 0);
        if (s->clocks.reports > 0 && !s->ignore_at)
            fail_msg("%s: %s (%d such)", s->base.name, s->clocks.first, s->clocks.reports);
        m->device[i]->type->close(m->device[i]);
    }
}

static int sums_of(const machine *m)
{
    int n = 0;
    for (int i = 0; i < m->n; i++) n += standin_of(m->device[i])->sums;
    return n;
}

/* Fit and predict. *sums: how many the devices were asked for. */
static outcome run(const recipe *r, const keel_device_type *type, int n, const char *beside,
                   int64_t batch, int shards, int *sums)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    machine m = machine_of(type, n, beside);
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = batch, .epochs = 2 };
    if (shards) must(keel_strategy_reproducible(m.strategy, shards));
    must(keel_fit(o.model, m.strategy, d, &options, &o.history));
    must(keel_evaluate(o.model, m.strategy, d, &options, &o.logs));
    must(keel_predict(o.model, m.strategy, d, &options, &o.predicted));
    *sums = sums_of(&m);
    close_machine(&m);
    keel_dataset_destroy(d);
    return o;
}

/* Stand-ins add rank after rank, as the host does, so there the bits are the same. */
static void sums_of_devices_are_those_of_the_host(void **unused)
{
    static const char *const names[] = { "convolutions", "statistics both ways",
                                         "products",     "a table",
                                         "attention",    "deep in bfloat16" };
    (void)unused;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int n = 2; n <= MOST; n += thin(1, 2, 2)) {
            const recipe *r = recipe_of(names[i]);
            int none, sums;
            outcome host = run(r, &standin_runs, n, NULL, 32, 0, &none);
            outcome own = run(r, &standin_sums, n, NULL, 32, 0, &sums);
            assert_int_equal(none, 0);
            if (sums < 2 * n) fail_msg("%s on %d devices: %d sums", r->name, n, sums);
            compare(&host, &own, r, "sums of the devices");
            forget(&host);
            forget(&own);
        }
}

static void the_host_adds_where_devices_must_not(void **unused)
{
    static const struct {
        const char *what, *beside;
        int n, shards;
        int64_t batch;
        bool some; /* other steps are summed by the devices */
    } cases[] = { { "reproducible steps", NULL, 3, 16, 32, false },
                  { "one device", NULL, 1, 0, 32, false },
                  { "cores beside devices", "cpu:0", 2, 0, 32, false },
                  { "a step without rows for a device", NULL, 3, 0, 37, true } };
    const recipe *r = recipe_of("products");
    (void)unused;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int none, sums;
        outcome host = run(r, &standin_runs, cases[c].n, cases[c].beside, cases[c].batch,
                           cases[c].shards, &none);
        outcome own = run(r, &standin_sums, cases[c].n, cases[c].beside, cases[c].batch,
                          cases[c].shards, &sums);
        if ((sums > 0) != cases[c].some) fail_msg("%s: %d sums", cases[c].what, sums);
        compare(&host, &own, r, cases[c].what);
        forget(&host);
        forget(&own);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The weights after so many steps. */
static outcome after(const recipe *r, int64_t steps)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    machine m = machine_of(&standin_sums, 3, NULL);
    const keel_callback ends = end_after(&steps);
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 24,
                                       .callbacks = KEEL_CALLBACKS(&ends) };
    if (steps > 0) must(keel_fit(o.model, m.strategy, d, &options, NULL));
    close_machine(&m);
    keel_dataset_destroy(d);
    return o;
}

/* Calls fail, or what they give to a stream never ends, at places all over a fit. */
static void fail_all_over(bool hangs)
{
    enum { WHO = 1, STEPS_MOST = 16 };
    const int runs = hangs ? thin(12, 6, 4) : thin(24, 8, 4);
    const recipe *r = recipe_of("convolutions");
    outcome known[STEPS_MOST] = { 0 };
    keel_dataset *d = rows_of(r);
    int calls = 0, failed = 0;
    for (int k = 0; k <= runs; k++) { /* the first has no failure, and counts the calls */
        outcome o = { .model = model_of(r) };
        machine m = machine_of(&standin_sums, 3, NULL);
        standin *s = standin_of(m.device[WHO]);
        const int at = k == 0 ? 0 : 1 + (int)((int64_t)(calls - 1) * (k - 1) / runs);
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 24, .epochs = 1 };
        *(hangs ? &s->hang_at : &s->fail_at) = at;
        if (hangs) must(keel_strategy_timeout(m.strategy, SLOW ? 1 : 0.4));
        const keel_status st = keel_fit(o.model, m.strategy, d, &options, NULL);
        if (k == 0) {
            assert_int_equal(st, KEEL_OK);
            calls = hangs ? s->given : s->calls;
        } else if (st < 0) {
            const int64_t steps = keel_model_steps_done(o.model);
            failed++;
            assert_true(st == KEEL_EDEVICE || st == KEEL_ENOMEM);
            if (!strstr(keel_error(), "standin:1")) fail_msg("call %d: %s", at, keel_error());
            assert_true(steps < STEPS_MOST);
            if (!known[steps].model) known[steps] = after(r, steps);
            compare_weights(&known[steps], &o, r, hangs ? "a hang" : "a failure");
        }
        close_machine(&m);
        forget(&o);
    }
    assert_true(failed > runs / 2);
    for (int i = 0; i < STEPS_MOST; i++)
        if (known[i].model) forget(&known[i]);
    keel_dataset_destroy(d);
}

static void a_failed_call_ends_the_sums_of_its_step(void **unused)
{
    (void)unused;
    fail_all_over(false);
}

static void a_device_that_never_answers_is_not_waited_for(void **unused)
{
    (void)unused;
    fail_all_over(true);
}

static void a_missing_wait_for_a_sum_is_seen(void **unused)
{
    const recipe *r = recipe_of("products");
    int unseen = 0, waits = 1;
    (void)unused;
    for (int k = 0; k <= waits; k += 1 + waits / thin(24, 8, 4)) {
        outcome o = { .model = model_of(r) };
        keel_dataset *d = rows_of(r);
        machine m = machine_of(&standin_sums, 2, NULL);
        standin *s = standin_of(m.device[1]);
        int64_t steps = 2;
        const keel_callback ends = end_after(&steps);
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 32,
                                           .callbacks = KEEL_CALLBACKS(&ends) };
        s->ignore_at = k;
        must(keel_fit(o.model, m.strategy, d, &options, NULL));
        if (k == 0)
            waits = s->waits;
        else if (s->clocks.reports == 0 && ++unseen)
            fail_msg("nobody sees that wait %d of %d is left out: of %s", k, waits, s->ignored);
        close_machine(&m);
        keel_dataset_destroy(d);
        forget(&o);
    }
}

/* ---- told ------------------------------------------------------------------------------------ */

static void tell(void *context, const char *line)
{
    char *text = context;
    snprintf(text + strlen(text), 800 - strlen(text), "%s\n", line);
}

static void devices_that_cannot_join_are_told_of(void **unused)
{
    const recipe *r = recipe_of("products");
    char text[800] = "";
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 32, .explain_devices = tell,
                                       .explain_devices_context = text };
    keel_model *model = model_of(r);
    keel_dataset *d = rows_of(r);
    machine m = machine_of(&standin_sums, 2, NULL);
    (void)unused;
    standin_of(m.device[0])->joins_nobody = true;
    must(keel_fit(model, m.strategy, d, &options, NULL));
    assert_non_null(strstr(text, "gradients are added by the host: these stand-ins add nothing"));
    assert_int_equal(sums_of(&m), 0);
    close_machine(&m);
    keel_dataset_destroy(d);
    keel_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_devices_are_those_of_the_host),
        cmocka_unit_test(the_host_adds_where_devices_must_not),
        cmocka_unit_test(a_failed_call_ends_the_sums_of_its_step),
        cmocka_unit_test(a_device_that_never_answers_is_not_waited_for),
        cmocka_unit_test(a_missing_wait_for_a_sum_is_seen),
        cmocka_unit_test(devices_that_cannot_join_are_told_of),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
