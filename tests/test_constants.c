/* Operations beside a number, on values that are that number, against Keras: which type the number
 * has decides on which side of it they are. And which type operations and layers give, beside bools
 * and whole numbers. golden/make_constants.py made the numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "base/python_json.h"
#include "golden.h"
#include "keel/keel.h"
#include "model/parts.h"
#include "must.h"
#include <string.h>

enum { OUTS_MAX = 128 };

static void check(const json_t *c, keel_strategy *one)
{
    const json_t *row = json_object_get(c, "row"), *outputs = json_object_get(c, "outputs"), *want;
    const size_t n = json_array_size(row);
    keel_tensor x, y[OUTS_MAX] = { { 0 } };
    keel_dataset *d;
    keel_model *m;
    const char *name;
    int k = 0, wrong = 0;
    assert_in_range(json_object_size(outputs), 1, OUTS_MAX);
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    m->file_config = json_deep_copy(json_object_get(c, "config"));
    must(keel_model_read_root(m));
    must(keel_model_fill_weights(m));
    must(keel_tensor_create(&x, KEEL_FLOAT32, &(keel_shape){ 2, { 1, (int64_t)n } }));
    for (size_t i = 0; i < n; i++)
        ((float *)x.data)[i] = (float)json_number_value(json_array_get(row, i));
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    must(keel_predict_outputs(m, one, d, NULL, y));
    json_object_foreach((json_t *)outputs, name, want)
    {
        for (size_t i = 0; i < json_array_size(want); i++) {
            const double got = (double)((float *)y[k].data)[i];
            if (golden_near(got, json_number_value(json_array_get(want, i)), 1e-6)) continue;
            print_error("%s, %s: of %.9g is %.9g, in Keras %.9g\n", golden_text(c, "policy"), name,
                        json_number_value(json_array_get(row, i)), got,
                        json_number_value(json_array_get(want, i)));
            wrong++;
        }
        keel_tensor_free(&y[k++]);
    }
    keel_dataset_destroy(d);
    keel_tensor_free(&x);
    keel_model_destroy(m);
    assert_int_equal(wrong, 0);
}

static void a_number_has_the_type_that_keras_gives_it(void **state)
{
    keel_strategy *one;
    json_t *cases = golden_load("constants.json"), *c;
    size_t i;
    (void)state;
    must(keel_strategy_create(&one, "cpu:0"));
    json_array_foreach(cases, i, c) check(c, one);
    keel_strategy_destroy(one);
    json_decref(cases);
    assert_int_equal(keel_memory_live(), 0);
}

/* What isclose says of `row` beside the number x2, which no JSON has. */
static void beside_a_number(const float *row, double x2, bool equal_nan, float *near)
{
    keel_model *m;
    keel_strategy *one;
    keel_dataset *d;
    keel_symbol s;
    keel_tensor y = { 0 };
    const keel_tensor x = { KEEL_FLOAT32, { 2, { 1, 4 } }, (void *)row };
    json_t *number = keel_json_of_number(x2);
    char *text = json_dumps(number, JSON_ENCODE_ANY);
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    must(keel_model_input(m, KEEL_DIMS(4), NULL, &s));
    must(keel_model_call_with(m, "ops.Isclose", KEEL_ARGS(KEEL_ARG_BOOL("equal_nan", equal_nan)),
                              KEEL_ARGS(KEEL_ARG_JSON("x2", text)), &s, 1, &s));
    must(keel_model_outputs(m, &s, 1));
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    must(keel_strategy_create(&one, "cpu:0"));
    must(keel_predict_outputs(m, one, d, NULL, &y));
    memcpy(near, y.data, 4 * sizeof *near);
    keel_tensor_free(&y);
    keel_strategy_destroy(one);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    json_decref(number);
    free(text);
}

/* As keras.ops.isclose says on TensorFlow and JAX. */
static void what_is_no_number_is_near_itself_if_it_shall_be(void **state)
{
    static const float row[] = { NAN, 1, INFINITY, -INFINITY };
    static const struct {
        const char *what;
        double x2;
        bool equal_nan;
        float want[4];
    } t[] = {
        { "NaN is near NaN", NAN, true, { 1, 0, 0, 0 } },
        { "NaN is near nothing", NAN, false, { 0, 0, 0, 0 } },
        { "NaN is not near a number", 1, true, { 0, 1, 0, 0 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        float near[4];
        beside_a_number(row, t[i].x2, t[i].equal_nan, near);
        for (int k = 0; k < 4; k++)
            if (near[k] != t[i].want[k])
                fail_msg("%s: %g beside %g gives %g", t[i].what, (double)row[k], t[i].x2,
                         (double)near[k]);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* keel_predict of a layer on whole numbers, or on what a cast makes of them; or keel_fit. */
static keel_status run(const char *layer, const keel_arg *args, bool cast, bool trains,
                       keel_strategy *one)
{
    keel_tensor x, y = { 0 };
    keel_dataset *d;
    keel_model *m;
    keel_symbol s;
    keel_history h = { 0 };
    keel_status status;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    must(keel_model_input(m, KEEL_DIMS(2, 2, 32), KEEL_ARGS(KEEL_ARG_STR("dtype", "int32")), &s));
    if (cast) s = must_call(m, "ops.Cast", KEEL_ARGS(KEEL_ARG_STR("dtype", "float32")), s);
    s = must_call(m, layer, args, s);
    s = must_call(m, "GlobalMaxPooling2D", NULL, s);
    s = must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 32)), s);
    must(keel_model_outputs(m, &s, 1));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
    must(keel_tensor_create(&x, KEEL_FLOAT32, &(keel_shape){ 4, { 2, 2, 2, 32 } }));
    const keel_tensor target = { KEEL_FLOAT32, { 2, { 2, 32 } }, x.data };
    must(keel_dataset_from_arrays(&d, &x, &target, NULL));
    if (trains)
        status = keel_fit(m, one, d, NULL, &h);
    else
        status = keel_predict_outputs(m, one, d, NULL, &y);
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_tensor_free(&x);
    keel_tensor_free(&y);
    keel_model_destroy(m);
    return status;
}

static void whole_numbers_are_refused_where_keras_makes_others_of_them(void **state)
{
    static const keel_arg bilinear[] = { KEEL_ARG_STR("interpolation", "bilinear"), { 0 } };
    static const keel_arg half[] = { KEEL_ARG_FLOAT("rate", 0.5), { 0 } };
    static const keel_arg noise[] = { KEEL_ARG_FLOAT("stddev", 0.5), { 0 } };
    static const struct {
        const char *layer;
        const keel_arg *args;
        bool only_trained;
    } of[] = {
        { "LayerNormalization", NULL, false },
        { "GroupNormalization", NULL, false },
        { "RMSNormalization", NULL, false },
        { "ops.LayerNorm", NULL, false },
        { "ops.RMSNorm", NULL, false },
        { "UpSampling2D", bilinear, false },
        { "Dropout", half, true },
        { "SpatialDropout2D", half, true },
        { "AlphaDropout", half, true },
        { "GaussianDropout", half, true },
        { "GaussianNoise", noise, true },
    };
    keel_strategy *one;
    (void)state;
    must(keel_strategy_create(&one, "cpu:0"));
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        const bool trains = of[k].only_trained;
        assert_int_equal(run(of[k].layer, of[k].args, false, trains, one), KEEL_EUNSUP);
        assert_non_null(strstr(keel_error(), "whole numbers"));
        must(run(of[k].layer, of[k].args, true, trains, one));
        if (trains) must(run(of[k].layer, of[k].args, false, false, one));
    }
    keel_strategy_destroy(one);
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_the_type_that_keras_gives_it),
        cmocka_unit_test(what_is_no_number_is_near_itself_if_it_shall_be),
        cmocka_unit_test(whole_numbers_are_refused_where_keras_makes_others_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
