/* Models of several inputs and outputs against the real Keras on one device: losses by list and by
 * dict with their weights, sample weights of each output, masks, metrics of each output, and the
 * names of the logs. The numbers are golden/outputs.json, made by golden/make_outputs.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "golden.h"
#include "keel/keel.h"
#include "must.h"

enum { BATCH = 8, EPOCHS = 2, FIELDS = 48 };

static json_t *cases;

/* ---- rows ------------------------------------------------------------------------------------ */

static keel_tensor tensor_of(const json_t *f)
{
    const json_t *values = json_object_get(f, "values");
    const bool is_int = json_is_true(json_object_get(f, "int"));
    keel_tensor t = { is_int ? KEEL_INT32 : KEEL_FLOAT32, golden_shape(f, "shape"), NULL };
    t.data = golden_reals(values, false);
    for (size_t i = 0; is_int && i < json_array_size(values); i++)
        ((int32_t *)t.data)[i] = (int32_t)json_integer_value(json_array_get(values, i));
    return t;
}

static bool is_output(const json_t *k, const char *name, int *which)
{
    const json_t *outputs = json_object_get(k, "outputs"), *v;
    size_t i;
    json_array_foreach(outputs, i, v)
    {
        *which = (int)i;
        if (!strcmp(json_string_value(v), name)) return true;
    }
    return false;
}

/* The weights of the i-th output, [n] or [n, time]. */
static keel_tensor weight_of(const json_t *list, int64_t n)
{
    const json_t *first = json_array_get(list, 0);
    const int64_t each = json_is_array(first) ? (int64_t)json_array_size(first) : 1;
    float *data = calloc((size_t)(n * each), sizeof *data);
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = 0; e < each; e++) {
            const json_t *row = json_array_get(list, (size_t)i);
            const json_t *v = json_is_array(row) ? json_array_get(row, (size_t)e) : row;
            data[i * each + e] = (float)json_number_value(v);
        }
    return (keel_tensor){ KEEL_FLOAT32, { each > 1 ? 2 : 1, { n, each } }, data };
}

static keel_dataset *rows_of(const json_t *k, keel_array_field *f, int *n_field)
{
    const json_t *fields = json_object_get(k, "fields"), *v;
    const json_t *weights = json_object_get(k, "sample_weight");
    const char *name;
    keel_dataset *d;
    int n = 0, which;
    json_object_foreach((json_t *)fields, name, v)
    {
        const bool target = is_output(k, name, &which);
        assert_true(n < FIELDS - 1);
        f[n] = (keel_array_field){ .path = name,
                                   .role = target ? KEEL_ROLE_TARGET : KEEL_ROLE_INPUT,
                                   .array = tensor_of(v) };
        const int64_t rows = f[n++].array.shape.dim[0];
        if (target && json_is_array(json_array_get(weights, (size_t)which)))
            f[n++] = (keel_array_field){ .path = name,
                                         .role = KEEL_ROLE_WEIGHT,
                                         .target = name,
                                         .array = weight_of(json_array_get(weights, (size_t)which),
                                                            rows) };
    }
    must(keel_dataset_from_fields(&d, f, n));
    *n_field = n;
    return d;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void near(const char *name, const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 2e-5 * fmax(1, fabs(want))))
        fail_msg("%s: %s is %.9g, in Keras %.9g", name, what, got, want);
}

static void same_logs(const char *name, const keel_logs *logs, const json_t *want)
{
    const char *key;
    const json_t *v;
    assert_int_equal(logs->count, json_object_size(want));
    json_object_foreach((json_t *)want, key, v)
    {
        int i = 0;
        while (i < logs->count && strcmp(logs->name[i], key)) i++;
        if (i == logs->count) fail_msg("%s: no log is named '%s'", name, key);
        near(name, key, logs->value[i], json_number_value(v));
    }
}

static void same_history(const char *name, const keel_history *h, const json_t *want)
{
    const char *key;
    const json_t *v;
    json_object_foreach((json_t *)want, key, v)
    {
        int i = 0;
        while (i < h->count && strcmp(h->name[i], key)) i++;
        if (i == h->count) fail_msg("%s: no column is named '%s'", name, key);
        for (int e = 0; e < EPOCHS; e++)
            near(name, key, h->value[e * h->count + i],
                 json_number_value(json_array_get(v, (size_t)e)));
    }
    assert_int_equal(h->count, json_object_size(want));
}

static void same_weights(const char *name, const keel_model *m, const json_t *want)
{
    const char *key;
    const json_t *v;
    json_object_foreach((json_t *)want, key, v)
    {
        keel_tensor t;
        must(keel_model_get_weight(m, key, &t));
        for (size_t i = 0; i < json_array_size(v); i++)
            near(name, key, (double)((float *)t.data)[i], json_number_value(json_array_get(v, i)));
        keel_tensor_free(&t);
    }
}

static void train_case(const json_t *k, const char *devices, bool reference)
{
    const char *name = golden_text(k, "name");
    keel_array_field f[FIELDS] = { 0 };
    keel_strategy *s;
    keel_model *m;
    keel_history h;
    keel_logs logs;
    int n_field;
    keel_dataset *d = rows_of(k, f, &n_field);
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = EPOCHS,
                                 .no_shuffle = true, .reference_kernels = reference };
    must(keel_model_load(&m, golden_path("outputs_%s.keras", name)));
    must(keel_strategy_create(&s, devices));
    must(keel_fit(m, s, d, &o, &h));
    same_history(name, &h, json_object_get(k, "history"));
    must(keel_evaluate(m, s, d, &o, &logs));
    same_logs(name, &logs, json_object_get(k, "evaluate"));
    same_weights(name, m, json_object_get(k, "weights"));
    keel_history_free(&h);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    for (int i = 0; i < n_field; i++) free(f[i].array.data);
}

static void several_outputs_train_as_in_keras(void **state)
{
    static const char *const devices[] = { "cpu:0", "cpu:0-2", "cpu:0-3" };
    const json_t *k;
    size_t i;
    (void)state;
    json_array_foreach(cases, i, k) for (size_t l = 0; l < 3; l++)
        train_case(k, devices[l], l == 1);
}

/* ---- what does not fit ----------------------------------------------------------------------- */

static keel_model *two_inputs(void)
{
    keel_model *m;
    keel_symbol a, b, in[2], y;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(3), KEEL_ARGS(KEEL_ARG_STR("name", "left")), &a));
    must(keel_model_input(m, KEEL_DIMS(2), KEEL_ARGS(KEEL_ARG_STR("name", "right")), &b));
    in[0] = a;
    in[1] = b;
    must(keel_model_call(m, "Concatenate", NULL, in, 2, &y));
    must(keel_model_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1)), &y, 1, &y));
    must(keel_model_outputs(m, &y, 1));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
    return m;
}

static void fields_that_do_not_fit_are_refused_by_name(void **state)
{
    static float numbers[4 * 3] = { 1, 2, 3 };
    const keel_tensor three = { KEEL_FLOAT32, { 2, { 4, 3 } }, numbers };
    const keel_tensor two = { KEEL_FLOAT32, { 2, { 4, 2 } }, numbers };
    const keel_tensor one = { KEEL_FLOAT32, { 2, { 4, 1 } }, numbers };
    const struct {
        const char *what;
        int n;
        keel_array_field f[4];
        const char *says; /* NULL: it trains */
    } rows[] = {
        { "by name, in any order",
          3,
          { { "right", KEEL_ROLE_INPUT, NULL, two },
            { "left", KEEL_ROLE_INPUT, NULL, three },
            { "y", KEEL_ROLE_TARGET, NULL, one } },
          NULL },
        { "in order, under other names",
          3,
          { { "x_0", KEEL_ROLE_INPUT, NULL, three },
            { "x_1", KEEL_ROLE_INPUT, NULL, two },
            { "y", KEEL_ROLE_TARGET, NULL, one } },
          NULL },
        { "too few inputs",
          2,
          { { "x", KEEL_ROLE_INPUT, NULL, three }, { "y", KEEL_ROLE_TARGET, NULL, one } },
          "1 input ('x')" },
        { "another shape",
          3,
          { { "left", KEEL_ROLE_INPUT, NULL, two },
            { "right", KEEL_ROLE_INPUT, NULL, two },
            { "y", KEEL_ROLE_TARGET, NULL, one } },
          "input 'left'" },
        { "no targets",
          2,
          { { "left", KEEL_ROLE_INPUT, NULL, three }, { "right", KEEL_ROLE_INPUT, NULL, two } },
          "no targets" },
    };
    keel_strategy *s;
    (void)state;
    must(keel_strategy_create(&s, "cpu:0-1"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        keel_model *m = two_inputs();
        keel_dataset *d;
        must(keel_dataset_from_fields(&d, rows[i].f, rows[i].n));
        const keel_status got = keel_fit(m, s, d, NULL, NULL);
        if (!rows[i].says)
            must(got);
        else if (got >= 0 || !strstr(keel_error(), rows[i].says))
            fail_msg("%s: '%s'", rows[i].what, got < 0 ? keel_error() : "trained");
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
    keel_strategy_destroy(s);
}

/* Bytes stay bytes up to the first op, and a number of a token above 2^24 is that number. */
static void integers_are_exact(void **state)
{
    enum { ROWS = 12, WIDTH = 7 };
    static uint8_t bytes[ROWS * WIDTH];
    static float same[ROWS * WIDTH], y[ROWS];
    const keel_tensor x8 = { KEEL_UINT8, { 2, { ROWS, WIDTH } }, bytes };
    const keel_tensor x32 = { KEEL_FLOAT32, { 2, { ROWS, WIDTH } }, same };
    const keel_tensor t = { KEEL_FLOAT32, { 1, { ROWS } }, y };
    const keel_tensor *const inputs[] = { &x8, &x32 };
    keel_tensor after[2];
    keel_strategy *s;
    (void)state;
    for (int i = 0; i < ROWS * WIDTH; i++) same[i] = bytes[i] = (uint8_t)(i * 37);
    for (int i = 0; i < ROWS; i++) y[i] = (float)(i % 3);
    must(keel_strategy_create(&s, "cpu:0-1"));
    for (int k = 0; k < 2; k++) {
        keel_model *m;
        keel_dataset *d;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", WIDTH))));
        must(keel_model_add(m, "Rescaling", KEEL_ARGS(KEEL_ARG_FLOAT("scale", 1. / 256))));
        must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 3))));
        must(keel_model_compile(
            m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" },
                                .loss = { { "sparse_categorical_crossentropy",
                                            KEEL_ARGS(KEEL_ARG_BOOL("from_logits", true)) } } }));
        must(keel_dataset_from_arrays(&d, inputs[k], &t, NULL));
        must(keel_fit(m, s, d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 5 }, NULL));
        must(keel_model_get_weight(m, "dense/kernel", &after[k]));
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
    assert_memory_equal(after[0].data, after[1].data, WIDTH * 3 * sizeof(float));
    keel_tensor_free(&after[0]);
    keel_tensor_free(&after[1]);
    keel_strategy_destroy(s);
}

static void metrics_are_logged_by_the_names_they_were_given(void **state)
{
    static float x[8], y[8];
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { 8, 1 } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 2, { 8, 1 } }, y };
    static const char *const want[] = { "loss", "far", "mae", "far_1" };
    char path[512];
    const char *folder = getenv("KEEL_TEST_TMP");
    keel_strategy *s;
    keel_dataset *d;
    keel_model *m;
    (void)state;
    snprintf(path, sizeof path, "%s/names.keras", folder ? folder : "/tmp");
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 1))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(
        m, &(keel_compile){
               KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } },
               .metrics = { { "MeanSquaredError", KEEL_ARGS(KEEL_ARG_STR("name", "far")) },
                            { "mae" },
                            { "MeanAbsoluteError", KEEL_ARGS(KEEL_ARG_STR("name", "far")) } } }));
    for (int loaded = 0; loaded < 2; loaded++) {
        keel_logs logs;
        must(keel_evaluate(m, s, d, NULL, &logs));
        assert_int_equal(logs.count, 4);
        for (int i = 0; i < 4; i++) assert_string_equal(logs.name[i], want[i]);
        if (loaded) break;
        must(keel_model_save(m, path));
        keel_model_destroy(m);
        must(keel_model_load(&m, path));
    }
    remove(path);
    keel_model_destroy(m);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
}

/* Where layers and operations give several of the model's outputs, no two have one name. */
static void outputs_of_one_layer_have_names_of_their_own(void **state)
{
    static const char *const want[] = { "split", "split_2", "split_1", "split_3" };
    const keel_shape shape = { 1, { 6 } };
    keel_model *m;
    keel_symbol x, out[4];
    (void)state;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, &shape, NULL, &x));
    const keel_arg *parts = KEEL_ARGS(KEEL_ARG_STR("name", "split"), KEEL_ARG_INT("axis", -1),
                                      KEEL_ARG_INT("indices_or_sections", 3));
    must(keel_model_call(m, "ops.Split", parts, &x, 1, &out[0]));
    out[1] = out[0] + 1;
    out[2] = must_call(m, "ReLU", KEEL_ARGS(KEEL_ARG_STR("name", "split_1")), x);
    out[3] = out[0] + 2;
    must(keel_model_outputs(m, out, 4));
    for (int i = 0; i < 4; i++) assert_string_equal(keel_model_output_name(m, i), want[i]);
    keel_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_outputs_train_as_in_keras),
        cmocka_unit_test(fields_that_do_not_fit_are_refused_by_name),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(metrics_are_logged_by_the_names_they_were_given),
        cmocka_unit_test(outputs_of_one_layer_have_names_of_their_own),
    };
    cases = golden_load("outputs.json");
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(cases);
    return failed;
}
