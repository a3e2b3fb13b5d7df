/* Metrics against Keras, over any cut of the rows, and what their short names mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "metrics/metric.h"

static const char *offset(const void *reals, int f64, int64_t i)
{
    return reals ? (const char *)reals + (f64 ? 8 : 4) * i : NULL;
}

static void check_case(const json_t *k, size_t index, int f64, int64_t cut)
{
    const keel_type *type = keel_metric_find(golden_text(k, "metric"));
    assert_non_null(type);
    const keel_metric *m = (const keel_metric *)type;
    void *args = keel_calloc(1, type->args_size);
    if (keel_fields_read(type, json_object_get(k, "config"), args) < 0)
        fail_msg("%s", keel_error());
    const keel_dtype real = f64 ? KEEL_FLOAT64 : KEEL_FLOAT32;
    const keel_spec p = { real, golden_shape(k, "prediction") };
    const keel_spec t = { real, golden_shape(k, "target") };
    if (keel_metric_check(m, &p, &t) < 0) fail_msg("%s", keel_error());
    void *pred = golden_reals(json_object_get(k, "y_pred"), f64);
    void *target = golden_reals(json_object_get(k, "y_true"), f64);
    void *weight = golden_reals(json_object_get(k, "weight"), f64);
    const int64_t rows = (int64_t)golden_number(k, "rows");
    double sum[KEEL_METRIC_SUMS] = { 0 };
    const struct {
        int64_t first, rows;
    } part[] = { { 0, cut }, { cut, 0 }, { cut, rows - cut }, { 0, 2 } }; /* as the script */
    for (int i = 0; i < 4; i++)
        keel_metric_update(
            m, f64,
            &(keel_loss_call){
                .args = args,
                .prediction = &p,
                .target = &t,
                .rows = part[i].rows,
                .y_pred = offset(pred, f64, part[i].first * keel_shape_count(&p.shape)),
                .y_true = offset(target, f64, part[i].first * keel_shape_count(&t.shape)),
                .weight = offset(weight, f64, part[i].first),
            },
            sum);
    const double got = m->result(args, sum), want = golden_number(k, "result");
    if (!golden_near(got, want, 1e-5))
        fail_msg("case %zu, %s: %.9g instead of %.9g", index, type->name, got, want);
    free(pred);
    free(target);
    free(weight);
    keel_free(args);
}

static void results_are_those_of_keras_for_every_cut(void **state)
{
    json_t *cases = golden_load("metrics.json"), *k;
    size_t i;
    json_array_foreach(cases, i, k)
    {
        for (int64_t cut = 0; cut <= 5; cut++) check_case(k, i, 0, cut);
        /* in float64 nothing may sit on the other side of a threshold or a tie */
        check_case(k, i, 1, 2);
    }
    assert_true(i > 50);
    json_decref(cases);
}

static void a_metric_that_saw_nothing_is_zero(void **state)
{
    const double sum[KEEL_METRIC_SUMS] = { 0 };
    for (int i = 0; keel_metrics[i]; i++) {
        void *args = keel_calloc(1, keel_metrics[i]->type.args_size);
        assert_int_equal(keel_fields_read(&keel_metrics[i]->type, NULL, args), KEEL_OK);
        assert_true(keel_metrics[i]->result(args, sum) == 0);
        keel_free(args);
    }
}

static void accuracy_means_what_the_shapes_say(void **state)
{
    const keel_spec none = { KEEL_FLOAT32, { 0 } }, one = { KEEL_FLOAT32, KEEL_SHAPE(1) };
    const keel_spec ten = { KEEL_FLOAT32, KEEL_SHAPE(10) },
                    grid = { KEEL_FLOAT32, KEEL_SHAPE(8, 10) };
    const keel_spec line = { KEEL_FLOAT32, KEEL_SHAPE(8) };
    const struct {
        const char *name;
        const keel_spec *p, *t;
        const char *want;
    } cases[] = {
        { "accuracy", &one, &one, "binary_accuracy" },
        { "accuracy", &one, &none, "binary_accuracy" },
        { "acc", &ten, &one, "sparse_categorical_accuracy" },
        { "acc", &ten, &none, "sparse_categorical_accuracy" },
        { "Accuracy", &ten, &ten, "categorical_accuracy" },
        { "accuracy", &grid, &line, "sparse_categorical_accuracy" },
        { "accuracy", &grid, &grid, "categorical_accuracy" },
        { "crossentropy", &ten, &none, "sparse_categorical_crossentropy" },
        { "ce", &one, &one, "binary_crossentropy" },
        { "mse", &ten, &ten, "mse" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = keel_metric_resolve(cases[i].name, "any", cases[i].p, cases[i].t);
        assert_string_equal(name, cases[i].want);
        const keel_metric *m = (const keel_metric *)keel_metric_find(name);
        assert_non_null(m);
        void *args = keel_calloc(1, m->type.args_size);
        assert_int_equal(keel_fields_read(&m->type, NULL, args), KEEL_OK);
        if (keel_metric_check(m, cases[i].p, cases[i].t) < 0) fail_msg("%s", keel_error());
        keel_free(args);
    }
}

static void short_names_and_configs_of_keras_are_known(void **state)
{
    const char *names[] = { "mse",
                            "MSE",
                            "mae",
                            "MAE",
                            "mean_squared_error",
                            "MeanSquaredError",
                            "binary_accuracy",
                            "top_k_categorical_accuracy",
                            "bce",
                            "Accuracy" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_non_null(keel_metric_find(names[i]));
    assert_null(keel_metric_find("no_such_metric"));
    json_t *j = json_loads("{\"class_name\": \"SparseCategoricalAccuracy\", \"module\": "
                           "\"keras.metrics\", \"config\": {\"name\": \"mine\", \"dtype\": "
                           "\"float32\"}, \"registered_name\": null}",
                           0, NULL);
    keel_object o = { 0 };
    assert_int_equal(keel_object_read(&o, j, keel_metric_find, "metrics"), KEEL_OK);
    keel_object_free(&o);
    json_decref(j);
}

static void shapes_that_do_not_fit_are_refused(void **state)
{
    const keel_spec four = { KEEL_FLOAT32, KEEL_SHAPE(4) }, three = { KEEL_FLOAT32, KEEL_SHAPE(3) };
    for (int i = 0; keel_metrics[i]; i++) {
        void *args = keel_calloc(1, keel_metrics[i]->type.args_size);
        assert_int_equal(keel_fields_read(&keel_metrics[i]->type, NULL, args), KEEL_OK);
        assert_int_equal(keel_metric_check(keel_metrics[i], &four, &three), KEEL_ESHAPE);
        keel_free(args);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_keras_for_every_cut),
        cmocka_unit_test(a_metric_that_saw_nothing_is_zero),
        cmocka_unit_test(accuracy_means_what_the_shapes_say),
        cmocka_unit_test(short_names_and_configs_of_keras_are_known),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
