/* Stateful layers, in which row i of a batch begins with the state in which row i of the batch
 * before ended: against the real Keras on any number of devices, to the bit where the strategy is
 * reproducible, and what a step that fails leaves. golden/make_stateful.py made the numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "golden.h"
#include "keel/keel.h"
#include "must.h"
#include "tensor/shape.h"
#include "train/strategy.h"

enum { EPOCHS = 2, ROWS = 18, VALIDATION = 12, SHARDS = 8 };

static json_t *golden;
static keel_tensor x, y;
static int64_t batch;

static keel_tensor numbers_of(const char *key)
{
    const json_t *f = json_object_get(golden, key);
    return (keel_tensor){ KEEL_FLOAT32, golden_shape(f, "shape"),
                          golden_reals(json_object_get(f, "values"), false) };
}

/* The first n rows, from row `from` on. */
static keel_dataset *rows_of(int64_t from, int64_t n)
{
    keel_dataset *d;
    keel_tensor a = x, b = y;
    a.data = (float *)x.data + from * (keel_shape_count(&x.shape) / ROWS);
    b.data = (float *)y.data + from * (keel_shape_count(&y.shape) / ROWS);
    a.shape.dim[0] = b.shape.dim[0] = n;
    must(keel_dataset_from_arrays(&d, &a, &b, NULL));
    return d;
}

static keel_model *model_of(const char *name)
{
    keel_model *m;
    must(keel_model_load(&m, golden_path("stateful_%s.keras", name)));
    return m;
}

static keel_strategy *strategy_of(int lanes, int workers)
{
    keel_cores real, cores = { .n = workers };
    keel_strategy *s;
    char devices[32];
    must(keel_cores_find(&real));
    for (int i = 0; i < workers; i++) cores.os[i] = real.os[i % real.n];
    snprintf(devices, sizeof devices, lanes == 1 ? "cpu:0" : "cpu:0-%d", lanes - 1);
    must(keel_strategy_create_on(&s, devices, &cores));
    return s;
}

/* ---- all that a case does -------------------------------------------------------------------- */

typedef struct outcome {
    keel_history history;
    keel_logs logs;
    keel_tensor goes_on, from_zero;
} outcome;

static outcome run(const char *name, keel_strategy *s, bool reference)
{
    outcome r = { 0 };
    keel_model *m = model_of(name);
    keel_dataset *all = rows_of(0, ROWS), *some = rows_of(0, VALIDATION);
    const keel_fit_options o = { KEEL_FIT_OPTIONS,   .batch_size = batch,
                                 .epochs = EPOCHS,   .no_shuffle = true,
                                 .validation = some, .reference_kernels = reference };
    must(keel_fit(m, s, all, &o, &r.history));
    must(keel_evaluate(m, s, all, &o, &r.logs));
    must(keel_predict(m, s, all, &o, &r.goes_on));
    keel_model_reset_states(m);
    must(keel_predict(m, s, all, &o, &r.from_zero));
    keel_dataset_destroy(all);
    keel_dataset_destroy(some);
    keel_model_destroy(m);
    return r;
}

static void outcome_free(outcome *r)
{
    keel_history_free(&r->history);
    keel_tensor_free(&r->goes_on);
    keel_tensor_free(&r->from_zero);
}

/* ---- against Keras --------------------------------------------------------------------------- */

static void near(const char *name, const char *what, double got, double want)
{
    if (!golden_near(got, want, 2e-5))
        fail_msg("%s: %s is %.9g, in Keras %.9g", name, what, got, want);
}

static void all_near(const char *name, const char *what, const keel_tensor *got,
                     const json_t *case_)
{
    const json_t *want = json_object_get(case_, what);
    assert_int_equal(json_array_size(want), keel_shape_count(&got->shape));
    for (size_t i = 0; i < json_array_size(want); i++)
        near(name, what, (double)((const float *)got->data)[i],
             json_number_value(json_array_get(want, i)));
}

static void states_go_on_as_in_keras(void **state)
{
    static const struct {
        int lanes;
        bool reference;
    } rows[] = { { 1, true }, { 1, false }, { 2, false }, { 3, false }, { 8, false } };
    const json_t *c, *cases = json_object_get(golden, "cases");
    size_t i;
    (void)state;
    json_array_foreach(cases, i, c) for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    {
        const char *name = golden_text(c, "name");
        keel_strategy *s = strategy_of(rows[k].lanes, rows[k].lanes < 2 ? 1 : 2);
        outcome r = run(name, s, rows[k].reference);
        for (int e = 0; e < EPOCHS; e++) {
            const double *logs = r.history.value + e * r.history.count;
            const size_t epoch = (size_t)e;
            near(name, "loss", logs[0],
                 json_number_value(json_array_get(json_object_get(c, "loss"), epoch)));
            near(name, "val_loss", logs[1],
                 json_number_value(json_array_get(json_object_get(c, "val_loss"), epoch)));
        }
        near(name, "evaluate", r.logs.value[0], golden_number(c, "evaluate"));
        all_near(name, "goes_on", &r.goes_on, c);
        all_near(name, "from_zero", &r.from_zero, c);
        outcome_free(&r);
        keel_strategy_destroy(s);
    }
}

/* ---- any number of devices ------------------------------------------------------------------- */

static void any_devices_give_the_same_bits(void **state)
{
    const json_t *c, *cases = json_object_get(golden, "cases");
    size_t i;
    (void)state;
    json_array_foreach(cases, i, c)
    {
        const char *name = golden_text(c, "name");
        outcome first = { 0 };
        for (int lanes = 1; lanes <= 8; lanes++) {
            keel_strategy *s = strategy_of(lanes, 1 + lanes % 4);
            must(keel_strategy_reproducible(s, SHARDS));
            outcome r = run(name, s, false);
            if (lanes == 1) {
                first = r;
                keel_strategy_destroy(s);
                continue;
            }
            const size_t n = (size_t)keel_shape_count(&r.goes_on.shape) * sizeof(float);
            if (memcmp(r.goes_on.data, first.goes_on.data, n) ||
                memcmp(r.from_zero.data, first.from_zero.data, n) ||
                memcmp(r.history.value, first.history.value,
                       (size_t)(EPOCHS * r.history.count) * sizeof(double)))
                fail_msg("%s: %d lanes differ from one", name, lanes);
            outcome_free(&r);
            keel_strategy_destroy(s);
        }
        outcome_free(&first);
    }
}

/* ---- when states move ------------------------------------------------------------------------ */

/* Fit n rows with a learning rate of 0, and predict the first batch from the states left. */
static keel_tensor after(keel_model *m, int64_t n, bool reset, keel_status want)
{
    keel_strategy *s = strategy_of(2, 2);
    keel_dataset *d = rows_of(0, n), *some = rows_of(0, batch);
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = batch, .epochs = EPOCHS,
                                 .no_shuffle = true, .reset_states = reset };
    keel_tensor out;
    must(keel_model_set_learning_rate(m, 0));
    assert_int_equal(keel_fit(m, s, d, &o, NULL), want);
    must(keel_predict(m, s, some, &o, &out));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_dataset_destroy(some);
    return out;
}

static void same(const keel_tensor *a, const keel_tensor *b, bool equal)
{
    const int differs =
        memcmp(a->data, b->data, (size_t)keel_shape_count(&a->shape) * sizeof(float));
    assert_int_equal(!differs, equal);
}

static void a_failed_step_leaves_the_states(void **state)
{
    keel_model *m = model_of("lstm"), *other = model_of("lstm");
    float *bad = (float *)x.data + batch * (keel_shape_count(&x.shape) / ROWS);
    const float kept = *bad;
    (void)state;
    *bad = NAN;
    keel_tensor failed = after(m, ROWS, false, KEEL_ENUMERIC);
    *bad = kept;
    keel_strategy *s = strategy_of(1, 1);
    keel_dataset *d = rows_of(0, batch);
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = batch };
    keel_tensor once, again;
    must(keel_predict(other, s, d, &o, &once)); /* moves the states as the one good step did */
    must(keel_predict(other, s, d, &o, &again));
    same(&failed, &again, true);
    same(&failed, &once, false);
    keel_tensor_free(&failed);
    keel_tensor_free(&once);
    keel_tensor_free(&again);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    keel_model_destroy(other);
}

static void epochs_begin_at_zero_where_that_is_asked_for(void **state)
{
    keel_model *m[3] = { model_of("lstm"), model_of("lstm"), model_of("lstm") };
    keel_tensor t[3];
    (void)state;
    t[0] = after(m[0], batch, true, KEEL_OK);
    t[1] = after(m[1], batch, false, KEEL_OK);
    keel_model_reset_states(m[2]); /* before the first run there are none */
    t[2] = after(m[2], batch, true, KEEL_OK);
    same(&t[0], &t[1], false);
    same(&t[0], &t[2], true);
    for (int i = 0; i < 3; i++) {
        keel_tensor_free(&t[i]);
        keel_model_destroy(m[i]);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void steps_of_other_rows_are_refused(void **state)
{
    static const struct {
        int64_t rows, batch;
        const char *says;
    } rows[] = {
        { ROWS, 5, "a step has 5 rows, but stateful layers keep the states of 6" },
        { ROWS - 1, 6, "a step has 5 rows" },
        { ROWS, 32, "a step has 18 rows" },
    };
    keel_strategy *s = strategy_of(2, 2);
    keel_model *m = model_of("lstm");
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        keel_dataset *d = rows_of(0, rows[i].rows);
        const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = rows[i].batch };
        keel_tensor t;
        assert_int_equal(keel_fit(m, s, d, &o, NULL), KEEL_EDATA);
        assert_non_null(strstr(keel_error(), rows[i].says));
        assert_int_equal(keel_predict(m, s, d, &o, &t), KEEL_EDATA);
        assert_non_null(strstr(keel_error(), rows[i].says));
        keel_dataset_destroy(d);
    }
    keel_strategy_destroy(s);
    keel_model_destroy(m);
}

static void a_shared_stateful_layer_is_refused(void **state)
{
    keel_model *m;
    keel_symbol in, out[2];
    keel_strategy *s = strategy_of(1, 1);
    keel_dataset *d = rows_of(0, batch);
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = batch };
    keel_tensor t[2];
    (void)state;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(5, 3), KEEL_ARGS(KEEL_ARG_INT("batch_size", batch)), &in));
    must(keel_model_call(m, "GRU",
                         KEEL_ARGS(KEEL_ARG_INT("units", 2), KEEL_ARG_BOOL("stateful", true),
                                   KEEL_ARG_STR("name", "g")),
                         &in, 1, &out[0]));
    must(keel_model_call_again(m, "g", &in, 1, &out[1]));
    must(keel_model_outputs(m, out, 2));
    assert_int_equal(keel_predict_outputs(m, s, d, &o, t), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "stateful layer that is called twice"));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_go_on_as_in_keras),
        cmocka_unit_test(any_devices_give_the_same_bits),
        cmocka_unit_test(a_failed_step_leaves_the_states),
        cmocka_unit_test(epochs_begin_at_zero_where_that_is_asked_for),
        cmocka_unit_test(steps_of_other_rows_are_refused),
        cmocka_unit_test(a_shared_stateful_layer_is_refused),
    };
    golden = golden_load("stateful.json");
    batch = (int64_t)golden_number(golden, "batch");
    x = numbers_of("x");
    y = numbers_of("y");
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(golden);
    free(x.data);
    free(y.data);
    return failed;
}
