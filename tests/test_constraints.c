/* Constraints: training is that of the real Keras on any number of devices, with a constraint on
 * each kind of weight, and what was saved goes on with them. */
#include "data_files.h"
#include "base/memory.h"
#include "golden.h"
#include "keel/keel.h"
#include "must.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const char *golden_file(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s", __FILE__);
    char *slash = strrchr(path, '/');
    snprintf(slash ? slash + 1 : path, 512, "golden/%s", name);
    return path;
}

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

static void training_with_constraints_is_that_of_keras(void **state)
{
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };
    json_t *want = golden_load("constraints.json");
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
        must(keel_model_load(&m, golden_file("constraints.keras")));
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
        predicts(m, d, s, json_object_get(want, "after"));
        must(keel_model_save(m, files_path("c.keras")));
        must(keel_model_load(&again, files_path("c.keras")));
        predicts(again, d, s, json_object_get(want, "after"));
        must(keel_fit(again, s, d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8 }, &h));
        keel_history_free(&h);
        keel_tensor bias;
        must(keel_model_get_weight(again, "conv2d/bias", &bias));
        for (int i = 0; i < 4; i++) assert_true(((float *)bias.data)[i] >= 0);
        keel_tensor_free(&bias);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_with_constraints_is_that_of_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
