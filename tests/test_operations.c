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

enum { ROWS = 3, OUTS = 8, OPEN = 4 }; /* OPEN: of an open dim */
static int wrong;                      /* cases, each named as it is found */

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

/* A number, a pair of it for each dim, and a list of it mean the same to Keras. */
static bool same_value(const json_t *ours, const json_t *theirs)
{
    const json_t *v;
    size_t i;
    if (json_is_number(ours) && json_is_number(theirs))
        return json_number_value(ours) == json_number_value(theirs);
    if (json_is_array(ours) && json_is_number(theirs)) {
        json_array_foreach((json_t *)ours, i, v) if (!same_value(v, theirs)) return false;
        return json_array_size(ours) > 1;
    }
    if (!json_is_array(ours) || json_array_size(ours) != json_array_size(theirs))
        return json_equal((json_t *)ours, (json_t *)theirs);
    json_array_foreach((json_t *)ours, i,
                       v) if (!same_value(v, json_array_get(theirs, i))) return false;
    return true;
}

/* Keel writes the arguments of an operation as Keras does; those it takes from none it leaves out.
 */
static void same_arguments(const json_t *ours, const json_t *theirs, const char *name)
{
    const json_t *layers = json_object_get(json_object_get(ours, "config"), "layers"), *l, *v;
    const json_t *wanted = json_object_get(json_object_get(theirs, "config"), "layers");
    const char *key;
    size_t i;
    assert_int_equal(json_array_size(layers), json_array_size(wanted));
    json_array_foreach((json_t *)layers, i, l)
    {
        const json_t *want = json_object_get(json_array_get(wanted, i), "config");
        if (!strstr(golden_text(l, "module"), ".ops.")) continue;
        json_object_foreach(json_object_get(l, "config"), key, v)
        {
            const json_t *w = json_object_get(want, key);
            if (!strcmp(key, "name") || (w && same_value(v, w))) continue;
            char *text = json_dumps(v, JSON_ENCODE_ANY);
            print_error("%s: %s of %s is written as %s\n", name, key, golden_text(l, "class_name"),
                        text);
            free(text);
            wrong++;
        }
    }
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
    same_arguments(config, json_object_get(c, "config"), golden_text(c, "name"));
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
    if (!m) {
        print_error("%s: %s\n", name, keel_error());
        wrong++;
        return;
    }
    assert_true(n <= OUTS);
    must(keel_model_input_shape(m, 0, &row));
    for (int k = 0; k < row.rank; k++)
        if (row.dim[k] == KEEL_DIM_OPEN) row.dim[k] = OPEN;
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
        if (keel_fit(
                m, one, d,
                &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = ROWS, .no_shuffle = true },
                NULL) < 0) {
            print_error("%s: %s\n", name, keel_error());
            wrong++;
        }
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
    assert_int_equal(wrong, 0);
    assert_int_equal(keel_memory_live(), 0);
}

/* Whole numbers that the type of a value would round are float32. */
static void places_are_exact(void **state)
{
    static const struct {
        const char *operation, *policy;
        int64_t dim;
    } cases[] = {
        { "ops.Argmax", "mixed_bfloat16", 257 },
        { "ops.Argmin", "mixed_float16", 2049 },
        { "ops.Argmax", "float32", 3000 },
        { "ops.Argsort", "mixed_bfloat16", 257 },
        { "ops.CountNonzero", "mixed_bfloat16", 300 },
    };
    (void)state;
    keel_strategy *one;
    must(keel_strategy_create(&one, "cpu:0"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_shape shape = { 1, { cases[i].dim } };
        keel_model *m;
        keel_symbol x;
        keel_dataset *d;
        keel_tensor rows, y = { 0 };
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
        must(keel_model_input(m, &shape, NULL, &x));
        /* a layer rounds x to its policy; an operation takes it as it is */
        x = must_call(m, "Rescaling", KEEL_ARGS(KEEL_ARG_FLOAT("scale", 1)), x);
        x = must_call(m, cases[i].operation, KEEL_ARGS(KEEL_ARG_INT("axis", -1)), x);
        must(keel_model_outputs(m, &x, 1));
        must(keel_model_set_dtype_policy(m, cases[i].policy));
        must(keel_tensor_create(&rows, KEEL_FLOAT32, &(keel_shape){ 2, { 1, cases[i].dim } }));
        const bool smallest = !strcmp(cases[i].operation, "ops.Argmin");
        const bool counts = !strcmp(cases[i].operation, "ops.CountNonzero");
        for (int64_t k = 0; counts && k < cases[i].dim; k++) ((float *)rows.data)[k] = 1;
        ((float *)rows.data)[cases[i].dim - 1] = smallest ? -1 : 1;
        must(keel_dataset_from_arrays(&d, &rows, NULL, NULL));
        must(keel_predict(m, one, d, NULL, &y));
        assert_true(((float *)y.data)[keel_shape_count(&y.shape) - 1] ==
                    (float)(counts ? cases[i].dim : cases[i].dim - 1));
        keel_tensor_free(&y);
        keel_tensor_free(&rows);
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
    keel_strategy_destroy(one);
    assert_int_equal(keel_memory_live(), 0);
}

static void images_that_do_not_fit_are_refused_by_name(void **state)
{
#define SIZE(...)    KEEL_ARGS(KEEL_ARG_INTS("size", __VA_ARGS__))
#define WINDOW(n)    KEEL_ARGS(KEEL_ARG_INT("filter_size", n))
#define STRIDES(...) KEEL_ARGS(KEEL_ARG_INT("size", 2), KEEL_ARG_INTS("strides", __VA_ARGS__))
    const struct {
        const char *operation, *says;
        int64_t row[4]; /* ends with 0 */
        const keel_arg *args;
    } cases[] = {
        { "ops.ExtractPatches",
          "size: 3 numbers are for rows of (depth, height",
          { 8, 8, 3 },
          SIZE(2, 2, 2) },
        { "ops.ExtractPatches",
          "expected rows of (height, width, channels)",
          { 8, 8, 8, 3 },
          SIZE(2, 2) },
        { "ops.ExtractPatches", "size: 2 or 3 numbers", { 8, 8, 8, 3 }, SIZE(2, 2, 2, 2) },
        { "ops.ExtractPatches", "does not fit into 4", { 4, 8, 8, 3 }, SIZE(5, 2, 2) },
        { "ops.ExtractPatches",
          "strides: one number, or 2 as of size",
          { 8, 8, 3 },
          STRIDES(2, 2, 2) },
        { "ops.ExtractPatches",
          "more than 1024 pixels that overlap",
          { 32, 32, 32, 1 },
          SIZE(16, 16, 16) },
        { "ops.SSIM", "a window of 11 does not fit into images of 8 x 20", { 8, 20, 3 }, NULL },
        { "ops.SSIM", "expected rows of (height, width, channels)", { 20, 20 }, NULL },
        { "ops.SSIM", "argument image2: only a value of the model", { 20, 20, 1 }, WINDOW(3) },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_shape shape = { 0 };
        keel_model *m;
        keel_symbol x;
        while (shape.rank < 4 && cases[i].row[shape.rank]) {
            shape.dim[shape.rank] = cases[i].row[shape.rank];
            shape.rank++;
        }
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
        must(keel_model_input(m, &shape, NULL, &x));
        assert_true(keel_model_call(m, cases[i].operation, cases[i].args, &x, 1, &x) < 0);
        if (!strstr(keel_error(), cases[i].says)) fail_msg("%zu: %s", i, keel_error());
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_that_do_not_fit_are_refused_by_name),
        cmocka_unit_test(places_are_exact),
        cmocka_unit_test(operations_give_and_learn_what_keras_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
