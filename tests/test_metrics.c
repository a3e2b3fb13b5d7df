/* Metrics against Keras, over any cut of the rows, and what their short names mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "metrics/metric.h"
#include <math.h>

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
    if (keel_metric_check(m, args, &p, &t) < 0) fail_msg("%s", keel_error());
    void *pred = golden_reals(json_object_get(k, "y_pred"), f64);
    void *target = golden_reals(json_object_get(k, "y_true"), f64);
    void *weight = golden_reals(json_object_get(k, "weight"), f64);
    const int64_t rows = (int64_t)golden_number(k, "rows");
    const int64_t n_sum = keel_metric_sums(m, args, &p, &t);
    double *sum = keel_calloc((size_t)n_sum, sizeof *sum);
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
    const double got = m->result(args, sum, n_sum), want = golden_number(k, "result");
    if (!golden_near(got, want, 1e-5))
        fail_msg("case %zu, %s: %.9g instead of %.9g", index, type->name, got, want);
    free(pred);
    free(target);
    free(weight);
    keel_free(sum);
    keel_fields_free(type, args);
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

/* Its arguments: the defaults, and what has none. */
static void *args_of(const keel_metric *m)
{
    static const struct {
        const char *metric, *config;
    } needs[] = {
        { "F1Score", "{\"average\": \"micro\"}" },
        { "FBetaScore", "{\"average\": \"macro\"}" },
        { "PrecisionAtRecall", "{\"recall\": 0.5}" },
        { "RecallAtPrecision", "{\"precision\": 0.5}" },
        { "SensitivityAtSpecificity", "{\"specificity\": 0.5}" },
        { "SpecificityAtSensitivity", "{\"sensitivity\": 0.5}" },
        { "IoU", "{\"num_classes\": 3, \"target_class_ids\": [1]}" },
        { "MeanIoU", "{\"num_classes\": 3}" },
        { "OneHotIoU", "{\"num_classes\": 3, \"target_class_ids\": [1]}" },
        { "OneHotMeanIoU", "{\"num_classes\": 3}" },
    };
    json_t *config = NULL;
    void *args = keel_calloc(1, m->type.args_size);
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (!strcmp(needs[i].metric, m->type.name)) config = json_loads(needs[i].config, 0, NULL);
    if (keel_fields_read(&m->type, config, args) < 0) fail_msg("%s", keel_error());
    json_decref(config);
    return args;
}

static void a_metric_that_saw_nothing_is_zero(void **state)
{
    const keel_spec row = { KEEL_FLOAT32, KEEL_SHAPE(3) };
    for (int i = 0; keel_metrics[i]; i++) {
        const keel_metric *m = keel_metrics[i];
        void *args = args_of(m);
        const int64_t n = keel_metric_sums(m, args, &row, &row);
        double *sum = keel_calloc((size_t)n, sizeof *sum);
        assert_true(m->result(args, sum, n) == 0);
        keel_free(sum);
        keel_fields_free(&m->type, args);
        keel_free(args);
    }
}

/* Targets that are all alike have no variance to weigh scores by: Keras gives NaN. */
static void r2_by_a_variance_of_zero_is_no_number(void **state)
{
    static const struct {
        const char *config, *what;
        double want;
    } cases[] = {
        { "{\"class_aggregation\": \"variance_weighted_average\"}", "by variance", NAN },
        { "{\"class_aggregation\": \"uniform_average\"}", "the mean", 0 },
    };
    const keel_metric *m = (const keel_metric *)keel_metric_find("R2Score");
    const keel_spec row = { KEEL_FLOAT32, KEEL_SHAPE(2) };
    const float y_true[] = { 1, 2, 1, 2, 1, 2 }, y_pred[] = { 0, 1, 2, 3, 4, 5 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *config = json_loads(cases[i].config, 0, NULL);
        void *args = keel_calloc(1, m->type.args_size);
        double sum[9] = { 0 };
        assert_int_equal(keel_fields_read(&m->type, config, args), KEEL_OK);
        assert_int_equal(keel_metric_sums(m, args, &row, &row), 9);
        keel_metric_update(m, 0,
                           &(keel_loss_call){ .args = args,
                                              .prediction = &row,
                                              .target = &row,
                                              .rows = 3,
                                              .y_pred = y_pred,
                                              .y_true = y_true },
                           sum);
        const double got = m->result(args, sum, 9);
        if (isnan(cases[i].want) ? !isnan(got) : got != cases[i].want)
            fail_msg("%s: %g instead of %g", cases[i].what, got, cases[i].want);
        keel_fields_free(&m->type, args);
        keel_free(args);
        json_decref(config);
    }
}

static void arguments_that_give_no_number_or_no_class_are_refused(void **state)
{
    static const struct {
        const char *metric, *config, *says;
    } bad[] = {
        { "Precision", "{\"thresholds\": 1.5}", "thresholds" },
        { "Recall", "{\"top_k\": 0}", "top_k" },
        { "Recall", "{\"class_id\": 3}", "class_id 3" },
        { "PrecisionAtRecall", "{\"recall\": 0.5, \"class_id\": 7}", "class_id 7" },
        { "PrecisionAtRecall", "{}", "recall" },
        { "SensitivityAtSpecificity", "{\"specificity\": 1.1}", "specificity" },
        { "AUC", "{\"num_thresholds\": 1}", "num_thresholds" },
        { "AUC", "{\"curve\": \"ROCK\"}", "curve" },
        { "AUC", "{\"label_weights\": [1, 2]}", "label_weights" },
        { "FBetaScore", "{\"average\": \"micro\", \"beta\": -1.0}", "beta" },
        { "IoU", "{\"num_classes\": 3, \"target_class_ids\": [3]}", "3 is none" },
        { "OneHotIoU", "{\"num_classes\": 2, \"target_class_ids\": [1]}", "num_classes 2" },
        { "OneHotMeanIoU", "{\"num_classes\": 3, \"sparse_y_pred\": true}", "sparse_y_pred" },
        { "MeanIoU", "{\"num_classes\": 3, \"axis\": 1}", "axis" },
    };
    const keel_spec row = { KEEL_FLOAT32, KEEL_SHAPE(3) };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const keel_metric *m = (const keel_metric *)keel_metric_find(bad[i].metric);
        json_t *config = json_loads(bad[i].config, 0, NULL);
        void *args = keel_calloc(1, m->type.args_size);
        const keel_status s = keel_fields_read(&m->type, config, args);
        if (s >= 0 && keel_metric_check(m, args, &row, &row) >= 0)
            fail_msg("%s %s is taken", bad[i].metric, bad[i].config);
        if (!strstr(keel_error(), bad[i].says))
            fail_msg("%s %s: '%s' does not say '%s'", bad[i].metric, bad[i].config, keel_error(),
                     bad[i].says);
        if (s >= 0) keel_fields_free(&m->type, args);
        keel_free(args);
        json_decref(config);
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
        if (keel_metric_check(m, args, cases[i].p, cases[i].t) < 0) fail_msg("%s", keel_error());
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
        void *args = args_of(keel_metrics[i]);
        assert_int_equal(keel_metric_check(keel_metrics[i], args, &four, &three), KEEL_ESHAPE);
        keel_fields_free(&keel_metrics[i]->type, args);
        keel_free(args);
    }
}

static void more_or_less_is_better_as_in_keras(void **state)
{
    json_t *direction = golden_load("directions.json");
    for (int i = 0; keel_metrics[i]; i++) {
        const char *name = keel_metrics[i]->type.name;
        const json_t *want = json_object_get(direction, name);
        if (!want) fail_msg("directions.json has no %s", name);
        if (keel_metrics[i]->direction != json_integer_value(want))
            fail_msg("%s: %d", name, keel_metrics[i]->direction);
    }
    json_decref(direction);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_keras_for_every_cut),
        cmocka_unit_test(a_metric_that_saw_nothing_is_zero),
        cmocka_unit_test(r2_by_a_variance_of_zero_is_no_number),
        cmocka_unit_test(arguments_that_give_no_number_or_no_class_are_refused),
        cmocka_unit_test(accuracy_means_what_the_shapes_say),
        cmocka_unit_test(short_names_and_configs_of_keras_are_known),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
        cmocka_unit_test(more_or_less_is_better_as_in_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
