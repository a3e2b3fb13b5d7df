/* Operations beside a number, on values that are that number, against Keras: which type the number
 * has decides on which side of it they are. And which type operations and layers give, beside bools
 * and whole numbers. golden/make_constants.py made the numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "keel/keel.h"
#include "model/parts.h"
#include "must.h"

enum { OUTS_MAX = 64 };

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
        for (size_t i = 0; i < n; i++) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_the_type_that_keras_gives_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
