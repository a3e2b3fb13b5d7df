/* What changes whole weights besides the optimizer: constraints after a step, with one on each kind
 * of weight, and SpectralNormalization before it. Training is that of the real Keras on any number
 * of devices, and what was saved goes on. And which optimizer moves which weight, and by how much.
 */
#include "data_files.h"
#include "base/memory.h"
#include "constraints/constraint.h"
#include "golden.h"
#include "keel/keel.h"
#include "must.h"
#include "regularizers/regularizer.h"
#include "tensor/shape.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* As number() in make_constraints.py. */
static keel_tensor numbers(keel_shape shape, int k)
{
    keel_tensor t;
    int64_t n = 1;
    for (int d = 0; d < shape.rank; d++) n *= shape.dim[d];
    must(keel_tensor_create(&t, KEEL_FLOAT32, &shape));
    for (int64_t i = 0; i < n; i++)
        ((float *)t.data)[i] = (float)((i * 37 + 29 * k + 11) % 101 - 50) / 32;
    return t;
}

static void predicts(keel_model *m, const keel_dataset *d, keel_strategy *s, const json_t *want)
{
    keel_tensor y;
    must(keel_predict(m, s, d, NULL, &y));
    for (size_t i = 0; i < json_array_size(want); i++) {
        const double got = (double)((float *)y.data)[i];
        if (!(fabs(got - json_number_value(json_array_get(want, i))) <= 1e-5))
            fail_msg("number %zu is %.9g, in Keras %.9g", i, got,
                     json_number_value(json_array_get(want, i)));
    }
    keel_tensor_free(&y);
}

static void evaluates(keel_model *m, const keel_dataset *d, keel_strategy *s, const json_t *want)
{
    keel_logs logs;
    if (!want) return;
    must(keel_evaluate(m, s, d, NULL, &logs));
    if (!golden_near(logs.value[0], json_number_value(want), 1e-5))
        fail_msg("evaluate gives %.9g, in Keras %.9g", logs.value[0], json_number_value(want));
}

static void weights_are(const keel_model *m, const json_t *want)
{
    const char *path;
    json_t *v;
    assert_int_equal(keel_model_weight_count(m), json_object_size(want));
    json_object_foreach((json_t *)want, path, v)
    {
        keel_tensor w;
        const char *name = strchr(path, '/') + 1; /* Keras's begins with the model */
        must(keel_model_get_weight(m, name, &w));
        for (size_t k = 0; k < json_array_size(v); k++) {
            const double got = (double)((float *)w.data)[k];
            if (!(fabs(got - json_number_value(json_array_get(v, k))) <= 1e-5))
                fail_msg("%s, number %zu: %.9g, in Keras %.9g", path, k, got,
                         json_number_value(json_array_get(v, k)));
        }
        keel_tensor_free(&w);
    }
}

/* NAME.keras trains as NAME.json says. The model is saved, read and trained again, and then no
 * number of the weight `positive` is below 0; NULL: none is looked at. */
static void trains_as_keras(const char *name, bool all_weights, const char *positive,
                            void (*prepare)(keel_model *m, const json_t *want))
{
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };
    char file[64];
    snprintf(file, sizeof file, "%s.json", name);
    json_t *want = golden_load(file);
    snprintf(file, sizeof file, "%s.keras", name);
    const json_t *loss = json_object_get(want, "loss");
    const int64_t n = (int64_t)golden_number(want, "rows");
    keel_tensor x = numbers((keel_shape){ 4, { n, 6, 5, 2 } }, 0);
    keel_tensor y = numbers((keel_shape){ 2, { n, 2 } }, 1);
    keel_dataset *d;
    must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    files_begin();
    for (int k = 0; k < 4; k++) {
        keel_model *m, *again;
        keel_strategy *s;
        keel_history h;
        must(keel_strategy_create(&s, devices[k]));
        must(keel_model_load(&m, golden_path("%s", file)));
        if (prepare) prepare(m, want);
        must(keel_fit(m, s, d,
                      &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8, .epochs = 2,
                                           .no_shuffle = true },
                      &h));
        for (int e = 0; e < 2; e++) {
            const double keras = json_number_value(json_array_get(loss, (size_t)e));
            if (!golden_near(h.value[e * h.count], keras, 1e-5))
                fail_msg("%s: loss of epoch %d is %.9g, in Keras %.9g", devices[k], e,
                         h.value[e * h.count], keras);
        }
        keel_history_free(&h);
        evaluates(m, d, s, json_object_get(want, "evaluate"));
        predicts(m, d, s, json_object_get(want, "after"));
        if (all_weights) weights_are(m, json_object_get(want, "weights"));
        must(keel_model_save(m, files_path("c.keras")));
        must(keel_model_load(&again, files_path("c.keras")));
        predicts(again, d, s, json_object_get(want, "after"));
        must(keel_fit(again, s, d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8 }, &h));
        keel_history_free(&h);
        keel_tensor w = { 0 };
        if (positive) must(keel_model_get_weight(again, positive, &w));
        for (int64_t i = 0; i < w.shape.dim[0]; i++) assert_true(((float *)w.data)[i] >= 0);
        keel_tensor_free(&w);
        keel_model_destroy(m);
        keel_model_destroy(again);
        keel_strategy_destroy(s);
    }
    files_end();
    keel_dataset_destroy(d);
    keel_tensor_free(&x);
    keel_tensor_free(&y);
    json_decref(want);
    assert_int_equal(keel_memory_live(), 0);
}

static void training_with_constraints_is_that_of_keras(void **state)
{
    (void)state;
    trains_as_keras("constraints", false, "conv2d/bias", NULL);
}

static void training_with_spectral_normalization_is_that_of_keras(void **state)
{
    (void)state;
    trains_as_keras("spectral", true, NULL, NULL);
}

static void training_with_orthogonal_regularizers_is_that_of_keras(void **state)
{
    (void)state;
    trains_as_keras("orthogonal", true, NULL, NULL);
}

/* With reproducible, weights have the same bits on any devices. */
static void same_bits_on_any_devices(void **state)
{
    static const char *const names[] = { "orthogonal.keras", "multi.keras" };
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-6" };
    keel_tensor x = numbers((keel_shape){ 4, { 22, 6, 5, 2 } }, 0);
    keel_tensor y = numbers((keel_shape){ 2, { 22, 2 } }, 1);
    keel_dataset *d;
    (void)state;
    must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    for (int f = 0; f < 2; f++) {
        keel_model *m[4];
        for (int k = 0; k < 4; k++) {
            keel_strategy *s;
            must(keel_strategy_create(&s, devices[k]));
            must(keel_strategy_reproducible(s, 8));
            must(keel_model_load(&m[k], golden_path("%s", names[f])));
            must(keel_fit(m[k], s, d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8 },
                          NULL));
            keel_strategy_destroy(s);
            for (int w = 0; w < keel_model_weight_count(m[0]); w++) {
                keel_tensor one = { 0 }, many = { 0 };
                must(keel_model_get_weight(m[0], keel_model_weight_name(m[0], w), &one));
                must(keel_model_get_weight(m[k], keel_model_weight_name(m[0], w), &many));
                if (memcmp(one.data, many.data,
                           (size_t)keel_shape_count(&one.shape) * sizeof(float)))
                    fail_msg("%s: %s has other bits on %s", names[f],
                             keel_model_weight_name(m[0], w), devices[k]);
                keel_tensor_free(&one);
                keel_tensor_free(&many);
            }
        }
        for (int k = 0; k < 4; k++) keel_model_destroy(m[k]);
    }
    keel_dataset_destroy(d);
    keel_tensor_free(&x);
    keel_tensor_free(&y);
    assert_int_equal(keel_memory_live(), 0);
}

static void each_weight_moves_by_its_optimizer_as_in_keras(void **state)
{
    (void)state;
    trains_as_keras("multi", true, NULL, NULL);
}

/* The second epoch of multi.json, from what Keras saved after the first. */
static void what_several_optimizers_keep_is_read_and_written(void **state)
{
    json_t *want = golden_load("multi.json");
    const int64_t n = (int64_t)golden_number(want, "rows");
    keel_tensor x = numbers((keel_shape){ 4, { n, 6, 5, 2 } }, 0);
    keel_tensor y = numbers((keel_shape){ 2, { n, 2 } }, 1);
    keel_dataset *d;
    keel_model *m, *again;
    keel_strategy *s;
    keel_history h;
    double rate;
    (void)state;
    files_begin();
    must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(keel_model_load(&m, golden_path("multi_begun.keras")));
    must(keel_model_save(m, files_path("m.keras")));
    must(keel_model_load(&again, files_path("m.keras")));
    keel_model_destroy(m);
    assert_int_equal(keel_model_learning_rate(again, &rate), KEEL_EUNSUP);
    assert_int_equal(keel_model_set_learning_rate(again, 0.5), KEEL_EUNSUP);
    must(keel_fit(again, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8, .no_shuffle = true },
                  &h));
    const double keras = json_number_value(json_array_get(json_object_get(want, "loss"), 1));
    assert_true(golden_near(h.value[0], keras, 1e-5));
    weights_are(again, json_object_get(want, "weights"));
    keel_history_free(&h);
    keel_model_destroy(again);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_tensor_free(&x);
    keel_tensor_free(&y);
    json_decref(want);
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static void exclude(keel_model *m, const json_t *want)
{
    const char *names[8] = { golden_text(want, "list") };
    const json_t *words = json_object_get(want, "words");
    const int n = (int)json_array_size(words);
    for (int i = 0; i < n; i++) names[i + 1] = json_string_value(json_array_get(words, (size_t)i));
    must(keel_model_exclude_from_weight_decay(m, names, n + 1));
}

static void weights_without_decay_are_those_of_keras(void **state)
{
    (void)state;
    trains_as_keras("undecayed", true, NULL, exclude);
}

static keel_tensor weight(const keel_model *m, const char *name)
{
    keel_tensor w;
    must(keel_model_get_weight(m, name, &w));
    return w;
}

static void a_step_that_fails_leaves_normalized_weights_as_they_were(void **state)
{
    static const char *const names[] = { "spectral_normalization/vector_u",
                                         "spectral_normalization/conv2d/kernel",
                                         "frozen/dense/kernel" };
    enum { NAMES = sizeof names / sizeof *names };
    const int64_t n = 6;
    (void)state;
    for (int k = 0; k < 2; k++) { /* a row that is not finite; no row with a weight */
        keel_tensor x = numbers((keel_shape){ 4, { n, 6, 5, 2 } }, 0);
        keel_tensor y = numbers((keel_shape){ 2, { n, 2 } }, 1);
        keel_tensor w = numbers((keel_shape){ 1, { n } }, 2), before[NAMES];
        keel_dataset *d;
        keel_model *m;
        keel_strategy *s;
        if (k == 0) ((float *)x.data)[100] = NAN;
        memset(w.data, 0, (size_t)n * sizeof(float));
        must(keel_dataset_from_arrays(&d, &x, &y, k ? &w : NULL));
        must(keel_strategy_create(&s, "cpu:0-1"));
        must(keel_model_load(&m, golden_path("spectral.keras")));
        for (int i = 0; i < NAMES; i++) before[i] = weight(m, names[i]);
        keel_history h = { 0 };
        const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 8 };
        assert_int_equal(keel_fit(m, s, d, &o, &h), k ? KEEL_OK : KEEL_ENUMERIC);
        keel_history_free(&h);
        for (int i = 0; i < NAMES; i++) {
            keel_tensor now = weight(m, names[i]);
            assert_memory_equal(now.data, before[i].data,
                                (size_t)keel_shape_count(&now.shape) * sizeof(float));
            keel_tensor_free(&now);
            keel_tensor_free(&before[i]);
        }
        keel_model_destroy(m);
        keel_strategy_destroy(s);
        keel_dataset_destroy(d);
        keel_tensor_free(&x);
        keel_tensor_free(&y);
        keel_tensor_free(&w);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void weights_that_are_not_there_cannot_be_excluded(void **state)
{
    static const struct {
        const char *name;
        keel_status want;
        const char *says;
    } cases[] = {
        { "bias", KEEL_OK, "" },
        { "middle/bias", KEEL_OK, "" },
        { "middle/bi", KEEL_EARG, "'middle/bi'" },
        { "alpha", KEEL_EARG, "'alpha'" },
        { "(bias", KEEL_EARG, "no regular expression" },
        { "\\d", KEEL_EUNSUP, "plain regular expression" },
    };
    keel_model *m;
    (void)state;
    must(keel_model_load(&m, golden_path("undecayed.keras")));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(keel_model_exclude_from_weight_decay(m, &cases[i].name, 1), cases[i].want);
        if (cases[i].want < 0) assert_non_null(strstr(keel_error(), cases[i].says));
    }
    assert_int_equal(keel_model_exclude_from_weight_decay(m, &cases[0].name, -1), KEEL_EARG);
    assert_int_equal(keel_model_exclude_from_weight_decay(m, NULL, 1), KEEL_EARG);
    must(keel_model_exclude_from_weight_decay(m, NULL, 0));
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

static keel_shape shape_of(const json_t *dims)
{
    keel_shape s = { .rank = (int)json_array_size(dims) };
    for (int d = 0; d < s.rank; d++) s.dim[d] = json_integer_value(json_array_get(dims, (size_t)d));
    return s;
}

/* "sets" of constraints.json: [class, config, shape, what becomes of numbers(shape, 2)]. */
static void any_arguments_change_a_weight_as_in_keras(void **state)
{
    json_t *golden = golden_load("constraints.json"), *set;
    size_t i;
    (void)state;
    json_array_foreach(json_object_get(golden, "sets"), i, set)
    {
        json_t *given = json_pack("{s:O,s:O}", "class_name", json_array_get(set, 0), "config",
                                  json_array_get(set, 1));
        const json_t *want = json_array_get(set, 3);
        keel_tensor w = numbers(shape_of(json_array_get(set, 2)), 2);
        keel_projection p;
        keel_object o;
        must(keel_object_read(&o, given, keel_constraint_find, "constraint"));
        must(keel_constraint_read(&o, &w.shape, &p));
        keel_project(&p, &w.shape, KEEL_FLOAT32, w.data);
        for (size_t k = 0; k < json_array_size(want); k++) {
            const double got = (double)((float *)w.data)[k];
            if (!(fabs(got - json_number_value(json_array_get(want, k))) <= 1e-6))
                fail_msg("set %zu, number %zu: %.9g, in Keras %.9g", i, k, got,
                         json_number_value(json_array_get(want, k)));
        }
        keel_object_free(&o);
        keel_tensor_free(&w);
        json_decref(given);
    }
    json_decref(golden);
    assert_int_equal(keel_memory_live(), 0);
}

static void what_is_orthogonal_is_a_matrix_of_several_vectors(void **state)
{
    static const struct {
        const char *mode;
        keel_shape shape;
        const char *says; /* NULL: it is one */
    } cases[] = {
        { "rows", { 2, { 2, 1 } }, NULL },
        { "columns", { 2, { 1, 2 } }, NULL },
        { "rows", { 2, { 1, 3 } }, "a matrix of one row" },
        { "columns", { 2, { 3, 1 } }, "a matrix of one column" },
        { "rows", { 1, { 3 } }, "a weight of 1 dims: it must be a matrix" },
        { "rows", { 3, { 3, 3, 3 } }, "a weight of 3 dims: it must be a matrix" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *given = json_pack("{s:s,s:{s:s}}", "class_name", "OrthogonalRegularizer", "config",
                                  "mode", cases[i].mode);
        keel_penalty p;
        keel_object o;
        must(keel_object_read(&o, given, keel_regularizer_find, "regularizer"));
        const keel_status s = keel_regularizer_read(&o, &cases[i].shape, &p);
        assert_int_equal(s < 0, cases[i].says != NULL);
        if (s < 0 && !strstr(keel_error(), cases[i].says)) fail_msg("%s", keel_error());
        if (s >= 0) assert_int_equal(p.columns, !strcmp(cases[i].mode, "columns"));
        keel_object_free(&o);
        json_decref(given);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void axes_that_a_weight_does_not_have_are_refused(void **state)
{
    static const struct {
        const char *config, *says;
    } cases[] = {
        { "{\"axis\": 2}", "axis 2 of a weight of 2 dims" },
        { "{\"axis\": [0, -3]}", "axis -3 of a weight of 2 dims" },
        { "{\"axis\": [0, -2]}", "axis -2 is given twice" },
    };
    const keel_shape shape = { 2, { 3, 2 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *given = json_pack("{s:s,s:o}", "class_name", "UnitNorm", "config",
                                  json_loads(cases[i].config, 0, NULL));
        keel_projection p;
        keel_object o;
        must(keel_object_read(&o, given, keel_constraint_find, "constraint"));
        assert_int_equal(keel_constraint_read(&o, &shape, &p), KEEL_EARG);
        assert_non_null(strstr(keel_error(), cases[i].says));
        keel_object_free(&o);
        json_decref(given);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* get_config() of keras.constraints. */
static void constraints_are_written_as_keras_writes_them(void **state)
{
    static const struct {
        const char *name, *given, *written;
    } cases[] = {
        { "MaxNorm", "{}", "{\"max_value\": 2.0, \"axis\": 0}" },
        { "MaxNorm", "{\"axis\": [0, 1, 2]}", "{\"max_value\": 2.0, \"axis\": [0, 1, 2]}" },
        { "UnitNorm", "{\"axis\": -1}", "{\"axis\": -1}" },
        { "UnitNorm", "{\"axis\": null}", "{\"axis\": null}" },
        { "MinMaxNorm", "{}",
          "{\"min_value\": 0.0, \"max_value\": 1.0, \"rate\": 1.0, \"axis\": 0}" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *given = json_pack("{s:s,s:o}", "class_name", cases[i].name, "config",
                                  json_loads(cases[i].given, 0, NULL));
        json_t *want = json_loads(cases[i].written, 0, NULL), *got;
        keel_object o;
        must(keel_object_read(&o, given, keel_constraint_find, "constraint"));
        assert_non_null(got = keel_object_json(&o));
        if (!json_equal(json_object_get(got, "config"), want))
            fail_msg("%s of %s is not written as %s", cases[i].name, cases[i].given,
                     cases[i].written);
        keel_object_free(&o);
        json_decref(got);
        json_decref(given);
        json_decref(want);
    }
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_with_constraints_is_that_of_keras),
        cmocka_unit_test(training_with_spectral_normalization_is_that_of_keras),
        cmocka_unit_test(training_with_orthogonal_regularizers_is_that_of_keras),
        cmocka_unit_test(same_bits_on_any_devices),
        cmocka_unit_test(each_weight_moves_by_its_optimizer_as_in_keras),
        cmocka_unit_test(what_several_optimizers_keep_is_read_and_written),
        cmocka_unit_test(weights_without_decay_are_those_of_keras),
        cmocka_unit_test(weights_that_are_not_there_cannot_be_excluded),
        cmocka_unit_test(constraints_are_written_as_keras_writes_them),
        cmocka_unit_test(any_arguments_change_a_weight_as_in_keras),
        cmocka_unit_test(what_is_orthogonal_is_a_matrix_of_several_vectors),
        cmocka_unit_test(axes_that_a_weight_does_not_have_are_refused),
        cmocka_unit_test(a_step_that_fails_leaves_normalized_weights_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
