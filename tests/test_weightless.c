/* A step whose sample weights sum to 0 is like any other: regularisers are there, and all moves
 * that moves in Keras. The numbers are golden/weightless.json, made by golden/make_weightless.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "keel/keel.h"
#include "model/model.h"

enum { WIDTH = 4, BATCH = 8 };

static void must(keel_status s)
{
    if (s < 0) fail_msg("%s", keel_error());
}

static const char *golden_file(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s", __FILE__);
    char *slash = strrchr(path, '/');
    snprintf(slash ? slash + 1 : path, 512, "golden/weightless_%s.keras", name);
    return path;
}

static void near(const char *name, const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 2e-5 * fmax(1, fabs(want))))
        fail_msg("%s: %s is %.9g, in Keras %.9g", name, what, got, want);
}

static void same_weights(const keel_model *m, const json_t *want, const char *name)
{
    assert_int_equal(keel_model_weight_count(m), json_array_size(want));
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        const json_t *w = json_array_get(want, (size_t)i);
        const json_t *values = json_object_get(w, "values");
        keel_tensor t;
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &t));
        for (size_t k = 0; k < json_array_size(values); k++)
            near(name, golden_text(w, "name"), (double)((float *)t.data)[k],
                 json_number_value(json_array_get(values, k)));
        keel_tensor_free(&t);
    }
}

static void steps_without_weight_move_what_keras_moves(void **state)
{
    json_t *golden = golden_load("weightless.json");
    const int64_t rows = (int64_t)golden_number(golden, "rows");
    float *x = golden_reals(json_object_get(golden, "x"), false);
    float *y = golden_reals(json_object_get(golden, "y"), false);
    float *w = golden_reals(json_object_get(golden, "w"), false);
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { rows, WIDTH } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 2, { rows, 1 } }, y };
    const keel_tensor tw = { KEEL_FLOAT32, { 1, { rows } }, w };
    static const char *const devices[] = { "cpu:0", "cpu:0-2" };
    const char *name;
    json_t *want;
    keel_dataset *d;
    must(keel_dataset_from_arrays(&d, &tx, &ty, &tw));
    for (int i = 0; i < 2; i++) {
        keel_strategy *s;
        must(keel_strategy_create(&s, devices[i]));
        json_object_foreach(json_object_get(golden, "cases"), name, want)
        {
            keel_model *m;
            keel_history h;
            must(keel_model_load(&m, golden_file(name)));
            must(keel_fit(
                m, s, d,
                &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH, .no_shuffle = true },
                &h));
            near(name, "the loss", h.value[0], golden_number(want, "loss"));
            assert_int_equal(m->compiled.iterations, (int64_t)golden_number(want, "iterations"));
            same_weights(m, json_object_get(want, "weights"), name);
            keel_history_free(&h);
            keel_model_destroy(m);
        }
        keel_strategy_destroy(s);
    }
    keel_dataset_destroy(d);
    free(x);
    free(y);
    free(w);
    json_decref(golden);
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        steps_without_weight_move_what_keras_moves) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
