/* Operations of keras.ops against Keras: what they give and what one training step makes of the
 * layer before them. The numbers are golden/operations.json, made by golden/make_operations.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "keel/keel.h"
#include "model/parts.h"
#include "must.h"

enum { ROWS = 3, OUTS = 8 };
static int wrong; /* cases, each named as it is found */

/* As number() in make_operations.py. */
static void numbers(keel_tensor *t, int k, double scale)
{
    for (int64_t i = 0; i < keel_shape_count(&t->shape); i++)
        ((float *)t->data)[i] = (float)((double)((i * 37 + 29 * k + 11) % 101 - 50) / 32 * scale);
}

static keel_tensor rows_of(const keel_shape *row)
{
    keel_tensor t;
    keel_shape shape = { .rank = row->rank + 1, .dim = { ROWS } };
    for (int d = 0; d < row->rank; d++) shape.dim[d + 1] = row->dim[d];
    must(keel_tensor_create(&t, KEEL_FLOAT32, &shape));
    return t;
}

/* The model of a config, which it takes over; NULL: refused. */
static keel_model *read_model(json_t *config)
{
    keel_model *m = NULL;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    m->file_config = config;
    if (keel_model_read_root(m) >= 0) return m;
    keel_model_destroy(m);
    return NULL;
}

/* The model of a case, after it was written and read again. */
static keel_model *model_of(const json_t *c)
{
    static const char *const names[2] = { "first/kernel", "first/bias" };
    json_t *config;
    keel_model *m = read_model(json_deep_copy(json_object_get(c, "config")));
    if (!m) return NULL;
    json_decref(m->file_config);
    m->file_config = NULL; /* so nothing of it is written back unread */
    must(keel_model_to_config(m, &config));
    keel_model_destroy(m);
    m = read_model(config);
    if (!m) return NULL;
    must(keel_model_fill_weights(m));
    for (int i = 0; i < 2; i++) {
        keel_tensor w;
        must(keel_model_get_weight(m, names[i], &w));
        numbers(&w, i + 1, i ? 0.3 : golden_number(c, "scale"));
        must(keel_model_set_weight(m, names[i], &w));
        keel_tensor_free(&w);
    }
    return m;
}

static void same(const keel_tensor *t, const json_t *want, const char *name, const char *what)
{
    assert_int_equal(keel_shape_count(&t->shape), json_array_size(want));
    for (size_t i = 0; i < json_array_size(want); i++) {
        const double got = (double)((float *)t->data)[i];
        const double value = json_number_value(json_array_get(want, i));
        if (golden_near(got, value, 1e-5)) continue;
        print_error("%s: %s [%zu] is %.9g, in Keras %.9g\n", name, what, i, got, value);
        wrong++;
        return;
    }
}

static void check(const json_t *c, keel_strategy *one)
{
    const char *name = golden_text(c, "name");
    const json_t *outputs = json_object_get(c, "outputs");
    const size_t n = json_array_size(outputs);
    keel_shape row;
    keel_tensor y[OUTS] = { { 0 } }, kernel;
    keel_dataset *d;
    keel_model *m = model_of(c);
    if (!m) fail_msg("%s: %s", name, keel_error());
    assert_true(n <= OUTS);
    must(keel_model_input_shape(m, 0, &row));
    keel_tensor x = rows_of(&row);
    numbers(&x, 0, 1);
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    must(keel_predict_outputs(m, one, d, NULL, y));
    for (size_t i = 0; i < n; i++) same(&y[i], json_array_get(outputs, i), name, "output");
    keel_dataset_destroy(d);
    if (n == 1 && json_is_array(json_object_get(c, "kernel"))) {
        keel_tensor target = y[0];
        numbers(&target, 3, 1);
        must(keel_dataset_from_arrays(&d, &x, &target, NULL));
        must(keel_model_compile(
            m, &(keel_compile){
                   KEEL_COMPILE,
                   .optimizer = { "sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.5)) },
                   .loss = { { "mse" } } }));
        must(keel_fit(
            m, one, d,
            &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = ROWS, .no_shuffle = true }, NULL));
        must(keel_model_get_weight(m, "first/kernel", &kernel));
        same(&kernel, json_object_get(c, "kernel"), name, "kernel after a step");
        keel_tensor_free(&kernel);
        keel_dataset_destroy(d);
    }
    for (size_t i = 0; i < n; i++) keel_tensor_free(&y[i]);
    keel_tensor_free(&x);
    keel_model_destroy(m);
}

static void operations_give_and_learn_what_keras_does(void **state)
{
    keel_strategy *one;
    json_t *cases = golden_load("operations.json"), *c;
    size_t i;
    (void)state;
    must(keel_strategy_create(&one, "cpu:0"));
    json_array_foreach(cases, i, c) check(c, one);
    keel_strategy_destroy(one);
    json_decref(cases);
    assert_int_equal(keel_memory_live(), 0);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_give_and_learn_what_keras_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
