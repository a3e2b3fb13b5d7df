/* Devices with unequal shares of each step, and cores beside devices with memory of their own: the
 * bits of one device, if steps are reproducible; and shares by speed, which give the slower device
 * fewer rows. The devices are stand-ins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "reproducible_works.h"
#include "sweep.h"
#include "standin.h"
#include "train/strategy.h"

enum { MOST = 6 };

/* n stand-ins, and cores beside them as `beside` names these; NULL: none. n 0: cores alone. */
typedef struct machine {
    int n;
    const char *beside;
    int share[MOST], n_share; /* 0: equal */
} machine;

/* Fit, evaluate and predict. plain: by plain C everywhere, so that all kinds of devices have the
 * same kernels. */
static outcome run_plain(const recipe *r, const machine *m, bool plain)
{
    outcome o = { .model = model_of(r) };
    keel_device *device[MOST];
    keel_dataset *d = rows_of(r);
    keel_strategy *s;
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size, .epochs = 2,
                                       .end = r->end, .reference_kernels = plain };
    for (int i = 0; i < m->n; i++) device[i] = standin_open(&standin_runs, i);
    if (m->n)
        must(keel_strategy_create_beside(&s, device, m->n, m->beside));
    else
        must(keel_strategy_create(&s, m->beside));
    must(keel_strategy_reproducible(s, r->shards));
    if (m->n_share) must(keel_strategy_share(s, m->share, m->n_share));
    must(keel_fit(o.model, s, d, &options, &o.history));
    must(keel_evaluate(o.model, s, d, &options, &o.logs));
    must(keel_predict(o.model, s, d, &options, &o.predicted));
    keel_strategy_destroy(s);
    for (int i = 0; i < m->n; i++) {
        const standin *x = standin_of(device[i]);
        assert_int_equal(x->allocations, 0);
        if (x->clocks.reports > 0) fail_msg("%s: %s", x->base.name, x->clocks.first);
        device[i]->type->close(device[i]);
    }
    keel_dataset_destroy(d);
    return o;
}

static void must_be_as_of_one(const char *const *names, size_t n, const machine *one,
                              const machine *others, size_t n_other, bool plain)
{
    for (size_t i = 0; i < n; i++) {
        const recipe *r = recipe_of(names[i]);
        outcome a = run_plain(r, one, plain);
        for (size_t k = 0; k < n_other; k += (size_t)thin(1, MOST, MOST)) {
            char how[80];
            const machine *m = &others[k];
            outcome b = run_plain(r, m, plain);
            snprintf(how, sizeof how, "%d devices beside %s, shares %d, %d ...", m->n,
                     m->beside ? m->beside : "none", m->share[0], m->share[1]);
            compare(&a, &b, r, how);
            forget(&b);
        }
        forget(&a);
    }
}

static void unequal_shares_of_cores_change_no_bit(void **unused)
{
    static const char *const names[] = { "convolutions", "convolutions, 23 shards", "products",
                                         "a table", "over time" };
    static const machine one = { 0, "cpu:0", { 0 }, 0 };
    static const machine others[] = { { 0, "cpu:0-1", { 3, 1 }, 2 },
                                      { 0, "cpu:0-1", { 1, 15 }, 2 },
                                      { 0, "cpu:0-3", { 5, 1, 2, 8 }, 4 },
                                      { 0, "cpu:0-4", { 1, 7, 2, 3, 3 }, 5 } };
    (void)unused;
    must_be_as_of_one(names, sizeof names / sizeof *names, &one, others,
                      sizeof others / sizeof *others, false);
}

static void unequal_shares_of_devices_change_no_bit(void **unused)
{
    static const char *const names[] = { "convolutions", "statistics both ways",
                                         "a table",      "rows that go on",
                                         "attention",    "deep in bfloat16" };
    static const machine one = { 1, NULL, { 0 }, 0 };
    static const machine others[] = { { 2, NULL, { 3, 1 }, 2 },
                                      { 3, NULL, { 2, 5, 1 }, 3 },
                                      { 4, NULL, { 1, 1, 13, 1 }, 4 } };
    (void)unused;
    must_be_as_of_one(names, sizeof names / sizeof *names, &one, others,
                      sizeof others / sizeof *others, false);
}

static void cores_beside_devices_have_the_bits_of_one(void **unused)
{
    static const char *const names[] = { "convolutions", "products",  "products, norms of weights",
                                         "a table",      "over time", "deep in bfloat16" };
    static const machine one = { 1, NULL, { 0 }, 0 };
    static const machine others[] = { { 1, "cpu:0", { 0 }, 0 },
                                      { 2, "cpu:0-1", { 0 }, 0 },
                                      { 2, "cpu:0-1", { 6, 6, 1, 3 }, 4 },
                                      { 1, "cpu:0+1", { 3, 1 }, 2 } };
    (void)unused;
    must_be_as_of_one(names, sizeof names / sizeof *names, &one, others,
                      sizeof others / sizeof *others, true);
}

/* ---- by speed -------------------------------------------------------------------------------- */

static void the_slower_device_gets_fewer_rows(void **unused)
{
    static const struct {
        const char *what;
        int n, row_us[4];
        const char *beside;
        int shards;
    } cases[] = { { "one of two", 2, { 20, 800 }, NULL, 0 },
                  { "the first of three", 3, { 800, 20, 20 }, NULL, 0 },
                  { "one so slow that it would have no shard", 2, { 10, 2000 }, NULL, 16 },
                  { "one so slow that it would have no row", 2, { 10, 4000 }, NULL, 0 },
                  { "devices of two speeds beside a core", 2, { 20, 800 }, "cpu:0", 0 },
                  { "all of one kind", 3, { 50, 50, 50 }, NULL, 0 } };
    const recipe *r = recipe_of("products");
    (void)unused;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        keel_model *m = model_of(r);
        keel_device *device[4];
        keel_strategy *s;
        int64_t rows = 0, fastest = -1, slowest = -1;
        const int64_t before = keel_model_steps_done(m);
        for (int i = 0; i < cases[c].n; i++) {
            device[i] = standin_open(&standin_runs, i);
            standin_of(device[i])->row_us = cases[c].row_us[i];
            snprintf(device[i]->kind, sizeof device[i]->kind, "%d us a row", cases[c].row_us[i]);
        }
        must(keel_strategy_create_beside(&s, device, cases[c].n, cases[c].beside));
        if (cases[c].shards) must(keel_strategy_reproducible(s, cases[c].shards));
        must(keel_strategy_share_by_speed(s, m, 64, NULL));
        for (int i = 0; i < keel_strategy_devices(s); i++) {
            const int64_t own = keel_strategy_rows(s, i, 64);
            const int share = keel_strategy_share_of(s, i);
            assert_true(own > 0 && share > 0);
            rows += own;
            for (int k = 0; k < i && i < cases[c].n; k++) {
                const int us = cases[c].row_us[i], other = cases[c].row_us[k];
                const int its = keel_strategy_share_of(s, k);
                if ((us < other && share <= its) || (us > other && share >= its) ||
                    (us == other && share != its))
                    fail_msg("%s: %d us a row have a share of %d, %d us %d", cases[c].what, us,
                             share, other, its);
            }
            if (i >= cases[c].n) continue;
            if (fastest < 0 || own > fastest) fastest = own;
            if (slowest < 0 || own < slowest) slowest = own;
        }
        assert_int_equal(rows, 64);
        if (cases[c].row_us[0] != cases[c].row_us[1] && !cases[c].beside)
            assert_true(slowest < fastest);
        assert_int_equal(keel_model_steps_done(m), before);
        keel_strategy_destroy(s);
        for (int i = 0; i < cases[c].n; i++) device[i]->type->close(device[i]);
        keel_model_destroy(m);
    }
}

/* Rows go on from step to step, of which each has three. */
static keel_symbol stateful(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(5, 3), KEEL_ARGS(KEEL_ARG_INT("batch_size", 9)), &x));
    return must_call(m, "LSTM",
                     KEEL_ARGS(KEEL_ARG_INT("units", 4), KEEL_ARG_BOOL("stateful", true)), x);
}

/* Of numbers above 1. */
static keel_symbol logarithm(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(4), NULL, &x));
    x = must_call(m, "Rescaling",
                  KEEL_ARGS(KEEL_ARG_FLOAT("scale", 1), KEEL_ARG_FLOAT("offset", -1)), x);
    return must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 2)),
                     must_call(m, "ops.Log", NULL, x));
}

static void made_up_rows_measure_whatever_real_ones_train(void **unused)
{
    static const struct {
        const char *what;
        keel_symbol (*network)(keel_model *m);
    } cases[] = { { "states of a whole step's rows", stateful },
                  { "losses that are finite for real rows", logarithm } };
    (void)unused;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        keel_device *device[2];
        keel_strategy *s;
        keel_model *m;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
        const keel_symbol x = cases[c].network(m);
        must(keel_model_outputs(m, &x, 1));
        must(keel_model_compile(
            m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } } }));
        for (int i = 0; i < 2; i++) {
            device[i] = standin_open(&standin_runs, i);
            standin_of(device[i])->row_us = i ? 800 : 20;
            snprintf(device[i]->kind, sizeof device[i]->kind, "kind %d", i);
        }
        must(keel_strategy_create_devices(&s, device, 2));
        if (keel_strategy_share_by_speed(s, m, 9, NULL) < 0)
            fail_msg("%s: %s", cases[c].what, keel_error());
        for (int i = 0; i < 2; i++) assert_true(keel_strategy_share_of(s, i) > 0);
        must(keel_strategy_reproducible(s, 16));
        keel_plan plan = { .rows = 9, .steps = 1, .batch_size = 9 };
        if (keel_plan_measure(&plan, m, s, NULL) < 0)
            fail_msg("%s: %s", cases[c].what, keel_error());
        assert_true(plan.plain_seconds > 0);
        keel_strategy_destroy(s);
        for (int i = 0; i < 2; i++) device[i]->type->close(device[i]);
        keel_model_destroy(m);
    }
}

/* ---- refused --------------------------------------------------------------------------------- */

static void what_cannot_be_shared_is_refused_by_name(void **unused)
{
    static const struct {
        int share[3], n, shards;
        const char *says;
    } cases[] = {
        { { 1, 2 }, 2, 0, "2 shares for 3 devices" },
        { { 1, -1, 2 }, 3, 0, "a share of -1 for device 2 of 3" },
        { { 1, 1, 1000 }, 3, 16, "with a share of 1 of 1002, standin:1 has none of the 16 shards" }
    };
    keel_device *device[3];
    keel_strategy *s;
    (void)unused;
    for (int i = 0; i < 3; i++) device[i] = standin_open(&standin_runs, i);
    must(keel_strategy_create_devices(&s, device, 3));
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (cases[c].shards) must(keel_strategy_reproducible(s, cases[c].shards));
        assert_int_equal(keel_strategy_share(s, cases[c].share, cases[c].n), KEEL_EARG);
        if (!strstr(keel_error(), cases[c].says)) fail_msg("%s", keel_error());
        for (int i = 0; i < 3; i++) assert_int_equal(keel_strategy_share_of(s, i), 1);
    }
    must(keel_strategy_share(s, (int[]){ 14, 1, 1 }, 3));
    assert_int_equal(keel_strategy_reproducible(s, 7), KEEL_EARG); /* the other way round */
    assert_non_null(strstr(keel_error(), "none of the 7 shards"));
    assert_int_equal(keel_strategy_shards(s), 16);
    keel_strategy_destroy(s);
    must(keel_strategy_create_beside(&s, device, 3, "cpu:0"));
    keel_model *m = model_of(recipe_of("a table"));
    assert_int_equal(keel_strategy_share_by_speed(s, m, 32, NULL), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "this model has look-up layers"));
    assert_int_equal(keel_strategy_share_of(s, 3), 1);
    keel_model_destroy(m);
    keel_strategy_destroy(s);
    assert_int_equal(keel_strategy_create_beside(&s, device, 3, "cpu:0-250"), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "251 devices of cores beside GPUs"));
    for (int i = 0; i < 3; i++) device[i]->type->close(device[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unequal_shares_of_cores_change_no_bit),
        cmocka_unit_test(unequal_shares_of_devices_change_no_bit),
        cmocka_unit_test(cores_beside_devices_have_the_bits_of_one),
        cmocka_unit_test(the_slower_device_gets_fewer_rows),
        cmocka_unit_test(made_up_rows_measure_whatever_real_ones_train),
        cmocka_unit_test(what_cannot_be_shared_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
