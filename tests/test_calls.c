/* A BatchNormalization that is called several times moves its statistics call by call, in the order
 * in which Keras runs the calls; calls with training=False find them as those before moved them.
 * The numbers are golden/calls.json, made by golden/make_calls.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "keel/keel.h"
#include "must.h"

enum { WIDTH = 4, BATCH = 8 };

static void same_weights(const keel_model *m, const json_t *want, const char *name)
{
    assert_int_equal(keel_model_weight_count(m), json_array_size(want));
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        const json_t *w = json_array_get(want, (size_t)i);
        const json_t *values = json_object_get(w, "values");
        keel_tensor t;
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &t));
        for (size_t k = 0; k < json_array_size(values); k++) {
            const double got = (double)((float *)t.data)[k];
            const double v = json_number_value(json_array_get(values, k));
            if (!(fabs(got - v) <= 2e-5 * fmax(1, fabs(v))))
                fail_msg("%s: %s [%zu] is %.9g, in Keras (%s) %.9g", name,
                         keel_model_weight_name(m, i), k, got, golden_text(w, "name"), v);
        }
        keel_tensor_free(&t);
    }
}

static void statistics_move_in_the_order_of_keras(void **state)
{
    json_t *golden = golden_load("calls.json");
    const int64_t rows = (int64_t)golden_number(golden, "rows");
    float *x = golden_reals(json_object_get(golden, "x"), false);
    float *y = golden_reals(json_object_get(golden, "y"), false);
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { rows, WIDTH } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 2, { rows, 1 } }, y };
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };
    const char *name;
    json_t *want;
    keel_dataset *d;
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    for (int i = 0; i < 4; i++) {
        keel_strategy *s;
        must(keel_strategy_create(&s, devices[i]));
        json_object_foreach(json_object_get(golden, "cases"), name, want)
        {
            keel_model *m;
            must(keel_model_load(&m, golden_path("calls_%s.keras", name)));
            must(keel_fit(
                m, s, d,
                &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH, .no_shuffle = true },
                NULL));
            same_weights(m, want, name);
            keel_model_destroy(m);
        }
        keel_strategy_destroy(s);
    }
    keel_dataset_destroy(d);
    free(x);
    free(y);
    json_decref(golden);
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(statistics_move_in_the_order_of_keras) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
