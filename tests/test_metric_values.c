/* Metrics as Keras's files have them, functions and lists of values too, against what evaluate
 * gives in the real Keras: on one device and on three. The numbers are golden/metric_values.json,
 * made by golden/make_metric_values.py, whose arithmetic is repeated here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "golden.h"
#include "keel/keel.h"
#include "model/parts.h"
#include "must.h"

enum { BATCH = 16, ROWS = 26, WIDEST = 48 };

/* Dense on a row; Conv2D on an image; Dense on steps, of which those that are 0 are masked; Dense
 * of one number, whose targets have no last dim. */
typedef enum kind_of_model { VECTOR, IMAGE, STEPS, NUMBER } kind_of_model;
static const char *const kind_names[] = { "vector", "image", "steps", "number" };
static const keel_shape inputs[] = {
    { 1, { 6 } }, { 3, { 4, 4, 3 } }, { 2, { 5, 3 } }, { 1, { 6 } }
};
static const keel_shape targets[] = { { 1, { 4 } }, { 3, { 4, 4, 2 } }, { 2, { 5, 2 } }, { 0 } };
static const int units[] = { 4, 2, 2, 1 };

static int64_t number(int64_t i, int64_t k, int64_t step, int64_t modulus)
{
    return (i * 131 + k * 37 + i * k * step) % modulus;
}

static keel_model *model_of(kind_of_model kind)
{
    const keel_arg *const conv =
        KEEL_ARGS(KEEL_ARG_STR("name", "out"), KEEL_ARG_INT("filters", units[kind]),
                  KEEL_ARG_INT("kernel_size", 3), KEEL_ARG_STR("padding", "same"),
                  KEEL_ARG_STR("activation", "hard_sigmoid"));
    const keel_arg *const dense =
        KEEL_ARGS(KEEL_ARG_STR("name", "out"), KEEL_ARG_INT("units", units[kind]),
                  KEEL_ARG_STR("activation", "hard_sigmoid"));
    keel_symbol x;
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, &inputs[kind], NULL, &x));
    if (kind == STEPS) x = must_call(m, "Masking", NULL, x);
    x = must_call(m, kind == IMAGE ? "Conv2D" : "Dense", kind == IMAGE ? conv : dense, x);
    must(keel_model_outputs(m, &x, 1));
    for (int k = 0; k < m->n_weight; k++)
        for (int64_t n = 0; n < keel_shape_count(&m->weight[k].info.spec.shape); n++)
            ((float *)m->weight[k].data)[n] = (float)((n * 7919 + 131 * k) % 1021 - 510) / 512;
    return m;
}

static struct {
    float x[ROWS * WIDEST], y[ROWS * WIDEST], weight[ROWS];
} rows;

static keel_tensor of_rows(keel_shape shape, float *data)
{
    for (int i = shape.rank++; i > 0; i--) shape.dim[i] = shape.dim[i - 1];
    shape.dim[0] = ROWS;
    return (keel_tensor){ KEEL_FLOAT32, shape, data };
}

static keel_dataset *rows_of(kind_of_model kind, bool weighted)
{
    const keel_shape x = inputs[kind], y = targets[kind];
    const int64_t n_x = keel_shape_count(&x), n_y = keel_shape_count(&y);
    keel_dataset *d;
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t k = 0; k < n_x; k++)
            rows.x[i * n_x + k] =
                kind == STEPS && k / 3 > i % 5 ? 0 : (float)(number(i, k, 7, 256) - 128) / 128;
        for (int64_t k = 0; k < n_y; k++) rows.y[i * n_y + k] = (float)(number(i, k, 3, 3) / 2);
        rows.weight[i] = (float)(i % 4) / 2;
    }
    const keel_array_field field[] = {
        { "x", KEEL_ROLE_INPUT, NULL, of_rows(x, rows.x), { 0 } },
        { "y", KEEL_ROLE_TARGET, NULL, of_rows(y, rows.y), { 0 } },
        { "w", KEEL_ROLE_WEIGHT, NULL, of_rows((keel_shape){ 0 }, rows.weight), { 0 } },
    };
    must(keel_dataset_from_fields(&d, field, weighted ? 3 : 2));
    return d;
}

static keel_status compile(keel_model *m, const json_t *metric, bool weighted)
{
    json_t *config = json_pack("{s:s, s:s, s:[O]}", "optimizer", "sgd", "loss", "mse",
                               weighted ? "weighted_metrics" : "metrics", metric);
    assert_non_null(config);
    json_object_set_new(config, "optimizer",
                        json_pack("{s:s, s:{}}", "class_name", "SGD", "config"));
    keel_status s = keel_compiled_from_config(m, config, false, &m->compiled);
    if (s >= 0) s = keel_compiled_state_create(m, &m->compiled);
    json_decref(config);
    return s;
}

static kind_of_model kind_of(const char *name)
{
    for (kind_of_model k = VECTOR; k < NUMBER; k++)
        if (!strcmp(name, kind_names[k])) return k;
    assert_string_equal(name, kind_names[NUMBER]);
    return NUMBER;
}

static void check_case(const json_t *k, size_t index, const char *devices)
{
    const kind_of_model kind = kind_of(golden_text(k, "model"));
    const bool weighted = json_is_true(json_object_get(k, "weighted"));
    const json_t *want = json_object_get(k, "value"), *v;
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH };
    keel_model *m = model_of(kind);
    keel_dataset *d = rows_of(kind, weighted);
    keel_strategy *s;
    keel_logs logs;
    size_t i;
    must(compile(m, json_object_get(k, "metric"), weighted));
    must(keel_strategy_create(&s, devices));
    must(keel_evaluate(m, s, d, &options, &logs));
    assert_int_equal(logs.count, 1 + json_array_size(want));
    json_array_foreach(want, i, v)
    {
        const double got = logs.value[1 + i], wanted = json_number_value(v);
        if (!golden_near(got, wanted, 2e-5))
            fail_msg("case %zu, %s: %.9g instead of %.9g", index, logs.name[1 + i], got, wanted);
        const char *place = strchr(logs.name[1 + i], '[');
        assert_true((place != NULL) == (json_array_size(want) > 1));
        if (place) assert_int_equal(place[1] - '0', i);
    }
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void metrics_of_files_are_those_of_keras(void **unused)
{
    (void)unused;
    json_t *cases = golden_load("metric_values.json"), *k;
    size_t index;
    json_array_foreach(cases, index, k)
    {
        check_case(k, index, "cpu:0");
        check_case(k, index, "cpu:0-2");
    }
    assert_true(index > 50);
    json_decref(cases);
}

static void what_gives_no_number_for_a_row_is_refused(void **unused)
{
    (void)unused;
#define FUNCTION(name)                                                                             \
    "{\"module\": \"builtins\", \"class_name\": \"function\", \"config\": \"" name "\"}"
#define WRAPPER(fn) "{\"class_name\": \"MeanMetricWrapper\", \"config\": {\"fn\": " fn "}}"
    static const struct {
        const char *metric, *says;
    } cases[] = {
        { WRAPPER(FUNCTION("dice")), "MeanMetricWrapper of 'dice', which gives no number" },
        { WRAPPER(FUNCTION("mine")), "MeanMetricWrapper of 'mine'" },
        { WRAPPER("null"), "MeanMetricWrapper of '?', which is no function" },
        { WRAPPER("{\"module\": \"keras.losses\", \"class_name\": \"Huber\", \"config\": {}}"),
          "MeanMetricWrapper of 'Huber', which is no function" },
        { "{\"class_name\": \"MeanMetricWrapper\", \"config\": {\"fn\": " FUNCTION(
              "huber") ", \"epsilon\": 1}}",
          "epsilon" },
        { "{\"class_name\": \"MeanMetricWrapper\"}", "MeanMetricWrapper of '?'" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_model *m = model_of(VECTOR);
        json_t *metric = json_loads(cases[i].metric, 0, NULL);
        assert_non_null(metric);
        assert_true(compile(m, metric, false) < 0);
        if (!strstr(keel_error(), cases[i].says))
            fail_msg("case %zu: '%s' does not say '%s'", i, keel_error(), cases[i].says);
        json_decref(metric);
        keel_model_destroy(m);
    }
}

/* Of a metric along another dim there is no number for each step or pixel. Keras fails on it, too.
 */
static void masks_and_weights_that_do_not_fit_a_metric_are_refused(void **unused)
{
    static float weight[ROWS * 4 * 4];
    static const struct {
        kind_of_model kind;
        const char *metric, *says;
    } cases[] = {
        { STEPS, "CosineSimilarity", "the mask's numbers of a row have shape (5,)" },
        { STEPS, "PearsonCorrelation", "the mask's numbers of a row have shape (5,)" },
        { IMAGE, "CosineSimilarity", "weights of a row have shape (4, 4)" },
        { IMAGE, "CategoricalCrossentropy", "weights of a row have shape (4, 4)" },
    };
    (void)unused;
    for (int i = 0; i < ROWS * 4 * 4; i++) weight[i] = (float)(i % 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kind_of_model kind = cases[i].kind;
        json_t *metric =
            json_pack("{s:s, s:{s:i}}", "class_name", cases[i].metric, "config", "axis", 1);
        keel_model *m = model_of(kind);
        keel_dataset_destroy(rows_of(kind, false)); /* fills rows */
        const keel_array_field field[] = {
            { "x", KEEL_ROLE_INPUT, NULL, of_rows(inputs[kind], rows.x), { 0 } },
            { "y", KEEL_ROLE_TARGET, NULL, of_rows(targets[kind], rows.y), { 0 } },
            { "w", KEEL_ROLE_WEIGHT, NULL, of_rows((keel_shape){ 2, { 4, 4 } }, weight), { 0 } },
        };
        keel_dataset *d;
        keel_strategy *s;
        keel_logs logs;
        must(compile(m, metric, kind == IMAGE));
        must(keel_dataset_from_fields(&d, field, kind == IMAGE ? 3 : 2));
        must(keel_strategy_create(&s, "cpu:0"));
        assert_int_equal(keel_evaluate(m, s, d, NULL, &logs), KEEL_ESHAPE);
        if (!strstr(keel_error(), cases[i].says))
            fail_msg("case %zu: '%s' does not say '%s'", i, keel_error(), cases[i].says);
        keel_strategy_destroy(s);
        keel_dataset_destroy(d);
        keel_model_destroy(m);
        json_decref(metric);
    }
}

static void a_list_of_classes_that_does_not_fit_is_refused(void **unused)
{
    (void)unused;
    keel_model *m = model_of(VECTOR);
    keel_dataset *d = rows_of(VECTOR, false);
    keel_strategy *s;
    keel_logs logs;
    json_t *metric =
        json_pack("{s:s, s:{s:{s:s, s:s, s:s}, s:[f,f]}}", "class_name", "MeanMetricWrapper",
                  "config", "fn", "module", "builtins", "class_name", "function", "config",
                  "categorical_focal_crossentropy", "alpha", 0.5, 1.0);
    assert_non_null(metric);
    must(compile(m, metric, false));
    must(keel_strategy_create(&s, "cpu:0"));
    assert_int_equal(keel_evaluate(m, s, d, NULL, &logs), KEEL_ESHAPE);
    assert_non_null(strstr(keel_error(), "alpha has 2 numbers for 4 classes"));
    json_decref(metric);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_of_files_are_those_of_keras),
        cmocka_unit_test(what_gives_no_number_for_a_row_is_refused),
        cmocka_unit_test(masks_and_weights_that_do_not_fit_a_metric_are_refused),
        cmocka_unit_test(a_list_of_classes_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
