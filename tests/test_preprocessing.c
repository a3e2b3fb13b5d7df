/* Models that begin with layers for texts, categories and numbers: training and predictions as in
 * the real Keras, on any number of devices, also once they were saved and loaded again. */
#include "data_files.h"
#include "base/memory.h"
#include "golden.h"
#include "io/zip.h"
#include "keel/keel.h"
#include "lookups.h"
#include "must.h"

static json_t *preprocessing;

static void predicts(keel_model *m, const keel_dataset *d, const json_t *want)
{
    keel_tensor y;
    must(keel_predict(m, one, d, NULL, &y));
    assert_int_equal(y.shape.dim[0], json_array_size(want));
    for (int64_t i = 0; i < y.shape.dim[0]; i++) {
        const double got = (double)((float *)y.data)[i];
        if (!(fabs(got - json_number_value(json_array_get(want, (size_t)i))) <= 4e-6))
            fail_msg("row %d is %.9g, in Keras %.9g", (int)i, got,
                     json_number_value(json_array_get(want, (size_t)i)));
    }
    keel_tensor_free(&y);
}

/* Train, compare, save, load, compare. */
static void trains(const char *file, const keel_dataset *d, const json_t *want, int batch,
                   int epochs)
{
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };
    const json_t *loss = json_object_get(want, "loss");
    for (int n = 0; n < 4; n++) {
        keel_model *m, *again;
        keel_strategy *s;
        keel_history h;
        must(keel_strategy_create(&s, devices[n]));
        must(keel_model_load(&m, golden_path("%s", file)));
        if (json_object_get(want, "before")) predicts(m, d, json_object_get(want, "before"));
        must(keel_fit(m, s, d,
                      &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = batch, .epochs = epochs,
                                           .no_shuffle = true },
                      &h));
        assert_int_equal(json_array_size(loss), epochs);
        for (int e = 0; e < epochs; e++) {
            const double keras = json_number_value(json_array_get(loss, (size_t)e));
            if (!golden_near(h.value[e * h.count], keras, 1e-5))
                fail_msg("%s: loss of epoch %d is %.9g, in Keras %.9g", file, e,
                         h.value[e * h.count], keras);
        }
        keel_history_free(&h);
        predicts(m, d, json_object_get(want, "after"));
        must(keel_model_save(m, files_path("t.keras")));
        must(keel_model_load(&again, files_path("t.keras")));
        predicts(again, d, json_object_get(want, "after"));
        keel_model_destroy(m);
        keel_model_destroy(again);
        keel_strategy_destroy(s);
    }
}

static void all_of_them_train_as_in_keras(void **state)
{
    static const struct {
        const char *name, *dtype;
        int64_t width;
    } columns[] = { { "text", "string", 0 },
                    { "city", "string", 1 },
                    { "code", "int64", 1 },
                    { "size", "float32", 3 } };
    const json_t *t = json_object_get(preprocessing, "training");
    const int64_t n = (int64_t)golden_number(t, "rows");
    keel_array_field field[5];
    keel_dataset *d;
    files_begin();
    for (int i = 0; i < 4; i++) {
        const keel_shape shape = { columns[i].width ? 2 : 1, { n, columns[i].width } };
        field[i] = (keel_array_field){ columns[i].name, KEEL_ROLE_INPUT, NULL,
                                       column_of(json_object_get(t, columns[i].name),
                                                 columns[i].dtype, shape) };
    }
    field[4] = (keel_array_field){ "y", KEEL_ROLE_TARGET, NULL,
                                   column_of(json_object_get(t, "y"), "float32",
                                             (keel_shape){ 1, { n } }) };
    must(keel_dataset_from_fields(&d, field, 5));
    trains("preprocessing.keras", d, t, 8, 2);
    keel_dataset_destroy(d);
    for (int i = 0; i < 5; i++) free(field[i].array.data);
    files_end();
}

static void a_classifier_of_texts_trains_as_in_keras(void **state)
{
    static const char *const inputs[] = { "text" };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    keel_dataset *d;
    files_begin();
    o.inputs = inputs;
    o.n_input = 1;
    o.label = "y";
    must(keel_dataset_open(&d, golden_path("texts.csv"), &o));
    trains("texts.keras", d, json_object_get(preprocessing, "texts"), 16, 3);
    keel_dataset_destroy(d);
    files_end();
}

/* Keras's class has no such argument, so a file that says it could not be loaded there. */
static void a_config_without_trainable_is_saved_without_it(void **state)
{
    keel_model *m;
    keel_zip *z;
    void *text;
    size_t n, i;
    json_t *l;
    int found = 0;
    files_begin();
    must(keel_model_load(&m, golden_path("preprocessing.keras")));
    must(keel_model_save(m, files_path("c.keras")));
    keel_model_destroy(m);
    must(keel_zip_open(&z, files_path("c.keras")));
    must(keel_zip_read(z, "config.json", 1 << 20, &text, &n));
    json_t *config = json_loadb(text, n, 0, NULL);
    json_array_foreach(json_object_get(json_object_get(config, "config"), "layers"), i, l)
    {
        if (strcmp(json_string_value(json_object_get(l, "class_name")), "Discretization")) continue;
        assert_null(json_object_get(json_object_get(l, "config"), "trainable"));
        found++;
    }
    assert_int_equal(found, 1);
    json_decref(config);
    keel_free(text);
    keel_zip_close(z);
    files_end();
}

static int open_golden(void **state)
{
    preprocessing = golden_load("preprocessing.json");
    return begin(state);
}

static int close_golden(void **state)
{
    json_decref(preprocessing);
    return end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_them_train_as_in_keras),
        cmocka_unit_test(a_classifier_of_texts_trains_as_in_keras),
        cmocka_unit_test(a_config_without_trainable_is_saved_without_it),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
