/* Whole models in the older HDF5 format that Keras 2 and 3 wrote (golden/make_legacy.py): they
 * predict what Keras predicts, go on training as Keras does, and are saved as .keras; and what is
 * refused. */
#define _GNU_SOURCE /* memmem */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "data_files.h"
#include "golden.h"
#include "io/file.h"
#include "keel/keel.h"
#include "model/parts.h"
#include "must.h"
#include "tensor/shape.h"

enum { BATCH = 4, FLIPS = 400 };

static keel_strategy *two;

static int begin(void **state)
{
    (void)state;
    files_begin();
    return keel_strategy_create(&two, "cpu:0-1") < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    keel_strategy_destroy(two);
    files_end();
    return 0;
}

/* ---- numbers of Keras ------------------------------------------------------------------------ */

static const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH,
                                          .no_shuffle = true };

/* What the model predicts is what Keras predicts, relative to the largest number. */
static void predicts(keel_model *m, const keel_dataset *d, const json_t *case_, const char *key)
{
    float *want = golden_reals(json_object_get(case_, key), false), most = 0;
    keel_tensor got;
    must(keel_predict(m, two, d, &options, &got));
    const int64_t n = keel_shape_count(&got.shape);
    assert_int_equal(n, json_array_size(json_object_get(case_, key)));
    for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf(want[i]));
    for (int64_t i = 0; i < n; i++) {
        const float y = ((float *)got.data)[i];
        if (!(fabsf(y - want[i]) <= 2e-6f * most))
            fail_msg("%s, %s: output %d is %g, in Keras %g", golden_text(case_, "name"), key,
                     (int)i, (double)y, (double)want[i]);
    }
    keel_tensor_free(&got);
    free(want);
}

static void old_files_go_on_as_keras_does(void **state)
{
    json_t *cases = golden_load("legacy.json"), *case_;
    size_t i;
    (void)state;
    assert_int_equal(json_array_size(cases), 9);
    json_array_foreach(cases, i, case_)
    {
        const char *path = files_path("saved.keras");
        keel_model *m, *again;
        keel_dataset *d;
        keel_logs logs;
        const keel_tensor x = { KEEL_FLOAT32, golden_shape(case_, "shape"),
                                golden_reals(json_object_get(case_, "x"), false) },
                          y = { KEEL_FLOAT32, golden_shape(case_, "y_shape"),
                                golden_reals(json_object_get(case_, "y"), false) };
        must(keel_model_load(&m, golden_path("legacy_%s.h5", golden_text(case_, "name"))));
        must(keel_dataset_from_arrays(&d, &x, &y, NULL));
        predicts(m, d, case_, "predict");
        must(keel_evaluate(m, two, d, &options, &logs));
        must(keel_model_save(m, path));
        must(keel_model_load(&again, path));
        must(keel_fit(m, two, d, &options, NULL));
        predicts(m, d, case_, "after");
        must(keel_fit(again, two, d, &options, NULL));
        predicts(again, d, case_, "after");
        keel_model_destroy(m);
        keel_model_destroy(again);
        keel_dataset_destroy(d);
        free(x.data);
        free(y.data);
    }
    json_decref(cases);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static unsigned char *bytes_of(const char *name, size_t *n)
{
    void *bytes;
    must(keel_file_read(golden_path("%s", name), 1 << 24, &bytes, n));
    return bytes;
}

static void what_does_not_fit_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *becomes, *says; /* becomes: as long as the text */
        keel_status status;
    } cases[] = {
        { "weights_old.h5", "", "", "an HDF5 file of weights without the model", KEEL_EFORMAT },
        { "legacy_image.h5", "2.21.0", "1.21.0", "a model of Keras 1; load it in Keras 2",
          KEEL_EUNSUP },
        { "legacy_image.h5", "\"LeakyReLU\"", "\"LeekyReLU\"", "no layer", KEEL_EUNSUP },
        { "legacy_image.h5", "\"class_name\"", "\"klass_name\"", "class_name", KEEL_EFORMAT },
        { "legacy_image.h5", "[[[\"stem\", 0", "[[[\"step\", 0", "there is no layer 'step'",
          KEEL_EFORMAT },
        { "legacy_image.h5", "[[[\"stem\", 0", "[[[\"stem\", x", "model_config: line 1",
          KEEL_EFORMAT },
        { "legacy_image.h5", "stem/kernel:0", "stem/kernal:0", "it names an array", KEEL_EFORMAT },
        { "legacy_image.h5", "\"filters\": 3", "\"filters\": 5", "not (3, 3, 2, 5)", KEEL_EFORMAT },
        { "legacy_image.h5", "\"use_bias\": false", "\"use_bias\": true ", "the layer 2",
          KEEL_EFORMAT },
        { "legacy_numbers.h5", "Adam/dense_1/kernel/v:0", "Adam/dense_1/kernel/w:0", NULL,
          KEEL_OK }, /* the optimizer alone is refused */
        { "legacy_functions.h5", "\"nn.gelu\"", "\"nn.gulu\"",
          "layer 'tf.nn.gelu': the function tf.nn.gulu between layers is not supported",
          KEEL_EUNSUP },
        { "legacy_functions.h5", "\"keepdims\"", "\"keepdams\"",
          "tf.math.reduce_max: its argument 'keepdams' is not supported", KEEL_EUNSUP },
        { "legacy_functions.h5", "\"clip_value_min\"", "\"clap_value_min\"",
          "tf.clip_by_value: its argument 'clip_value_min' is not in the file", KEEL_EUNSUP },
        { "legacy_image.h5", "GCOL", "GOAL", "not a heap of texts", KEEL_EFORMAT },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        const size_t length = strlen(text);
        keel_model *m = NULL;
        size_t n;
        unsigned char *bytes = bytes_of(cases[i].file, &n);
        unsigned char *at = memmem(bytes, n, text, length);
        if (!at) fail_msg("%s: no '%s' in it", cases[i].file, text);
        memcpy(at, cases[i].becomes, length);
        const char *path = files_write("m.h5", (char *)bytes, n);
        const keel_status s = keel_model_load(&m, path);
        if (s != cases[i].status)
            fail_msg("%s: '%s': status %d: %s", cases[i].file, text, s, keel_error());
        if (s < 0 && (!strstr(keel_error(), cases[i].says) || !strstr(keel_error(), path)))
            fail_msg("%s: '%s': %s", cases[i].file, text, keel_error());
        if (s >= 0) assert_non_null(strstr(keel_model_refused(m), "optimizer_weights"));
        if (s >= 0) assert_false(keel_model_is_compiled(m));
        keel_model_destroy(m);
        keel_free(bytes);
    }
}

/* Keras 3 takes the states that an LSTM begins with only by their name. */
static void states_are_written_by_their_name(void **state)
{
    keel_model *m;
    json_t *layer;
    size_t i;
    int found = 0;
    (void)state;
    must(keel_model_load(&m, golden_path("legacy_states.h5")));
    json_array_foreach(json_object_get(json_object_get(m->file_config, "config"), "layers"), i,
                       layer)
    {
        const json_t *call = json_array_get(json_object_get(layer, "inbound_nodes"), 0);
        const json_t *states = json_object_get(json_object_get(call, "kwargs"), "initial_state");
        if (!states) continue;
        assert_int_equal(json_array_size(json_object_get(call, "args")), 1);
        assert_int_equal(json_array_size(states),
                         strcmp(golden_text(layer, "class_name"), "GRU") ? 2 : 1);
        found++;
    }
    assert_int_equal(found, 2);
    keel_model_destroy(m);
}

/* Whatever a byte becomes, and wherever the file ends, it is read or refused. */
static void damage_is_refused_or_harmless(void **state)
{
    static const char *const files[] = { "legacy_words.h5", "legacy_new_image.h5",
                                         "legacy_functions.h5" };
    uint32_t chance = 5;
    int refused = 0;
    (void)state;
    const size_t live = (size_t)keel_memory_live();
    for (int f = 0; f < 3; f++) {
        size_t n;
        unsigned char *bytes = bytes_of(files[f], &n);
        for (int i = 0; i < FLIPS; i++) {
            keel_model *m = NULL;
            chance = chance * 1664525 + 1013904223;
            const size_t at = chance % n;
            const unsigned char was = bytes[at];
            const bool cut = i % 8 == 7;
            bytes[at] ^= (unsigned char)(1u << (chance >> 29));
            refused += keel_model_load(&m, files_write("m.h5", (char *)bytes, cut ? at : n)) < 0;
            keel_model_destroy(m);
            bytes[at] = was;
        }
        keel_free(bytes);
    }
    assert_int_equal(keel_memory_live(), live);
    assert_in_range(refused, FLIPS / 4, 3 * FLIPS - 1);
}

/* ---- configs of Keras 1.2 to 2, of which no file is at hand -----------------------------------
 */

#define OF(class_name, more) "{\"class_name\":\"" class_name "\",\"config\":" more "}"

static void older_configs_become_what_a_file_has_today(void **state)
{
    static const struct {
        const char *what, *root, *training; /* training: NULL: none */
        const char *part[2], *want;         /* keys from the root on; compact, keys in order */
    } cases[] = {
        { "a list of layers, of which the first has the shape",
          OF("Sequential", "[" OF("Dense", "{\"name\":\"d\",\"batch_input_shape\":[null,3]}") "]"),
          NULL,
          { "config", "layers" },
          "[{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,3],\"d"
          "type\":\"float32\",\"name\":\"d_input\"},\"module\":\"keras.layers\",\"r"
          "egistered_name\":null},{\"class_name\":\"Dense\",\"config\":{\"name\":\""
          "d\"},\"module\":\"keras.layers\",\"registered_name\":null}]" },
        { "the first layer of a first model has the shape",
          OF("Sequential",
             "{\"layers\":[" OF(
                 "Sequential",
                 "{\"name\":\"s\",\"layers\":[" OF(
                     "Dense", "{\"name\":\"d\",\"batch_input_shape\":[null,3]}") "]}") "]}"),
          NULL,
          { "config", "layers" },
          "[{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,3],\"d"
          "type\":\"float32\",\"name\":\"s_input\"},\"module\":\"keras.layers\",\"r"
          "egistered_name\":null},{\"class_name\":\"Sequential\",\"config\":{\"laye"
          "rs\":[{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,3"
          "],\"dtype\":\"float32\",\"name\":\"d_input\"},\"module\":\"keras.layers"
          "\",\"registered_name\":null},{\"class_name\":\"Dense\",\"config\":{\"nam"
          "e\":\"d\"},\"module\":\"keras.layers\",\"registered_name\":null}],\"name"
          "\":\"s\"},\"module\":\"keras\",\"registered_name\":null}]" },
        { "an input is there already",
          OF("Sequential",
             "{\"layers\":[" OF("InputLayer",
                                "{\"name\":\"i\",\"batch_input_shape\":[null,3]}") "]}"),
          NULL,
          { "config", "layers" },
          "[{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,3],\"n"
          "ame\":\"i\"},\"module\":\"keras.layers\",\"registered_name\":null}]" },
        { "only a Sequential model has such inputs",
          OF("Functional",
             "{\"layers\":[" OF("Dense", "{\"name\":\"d\",\"batch_input_shape\":[null,3]}") "]}"),
          NULL,
          { "config", "layers" },
          "[{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\"},\"module\":\"kera"
          "s.layers\",\"registered_name\":null}]" },
        { "classes of another name",
          OF("Model", "{\"layers\":[" OF("BatchNormalizationV1", "{\"axis\":[3]}") "," OF(
                          "BatchNormalizationV2", "{\"axis\":[1,2]}") "]}"),
          NULL,
          { "config", "layers" },
          "[{\"class_name\":\"BatchNormalization\",\"config\":{\"axis\":3},\"module"
          "\":\"keras.layers\",\"registered_name\":null},{\"class_name\":\"BatchNor"
          "malization\",\"config\":{\"axis\":[1,2]},\"module\":\"keras.layers\",\"r"
          "egistered_name\":null}]" },
        { "the whole model has one, too",
          OF("Model", "{\"layers\":[]}"),
          NULL,
          { "class_name" },
          "\"Functional\"" },
        { "a rate that falls with each step",
          OF("Sequential", "{\"layers\":[]}"),
          "{\"optimizer_config\":" OF("SGD", "{\"lr\":0.5,\"decay\":0.25}") "}",
          { "compile_config", "optimizer" },
          "{\"class_name\":\"SGD\",\"config\":{\"learning_rate\":{\"class_name\":\""
          "InverseTimeDecay\",\"config\":{\"decay_rate\":0.25,\"decay_steps\":1,\"i"
          "nitial_learning_rate\":0.5,\"staircase\":false},\"module\":\"keras.optim"
          "izers.schedules\",\"registered_name\":null}},\"module\":\"keras.optimize"
          "rs\",\"registered_name\":null}" },
        { "a rate that does not",
          OF("Sequential", "{\"layers\":[]}"),
          "{\"optimizer_config\":" OF("Custom>AdamW",
                                      "{\"learning_rate\":0.5,\"decay\":0.0,\"epsilon\":null,"
                                      "\"beta1\":0.75,\"jit_compile\":true}") "}",
          { "compile_config", "optimizer" },
          "{\"class_name\":\"AdamW\",\"config\":{\"beta_1\":0.75,\"learning_rate\":"
          "0.5},\"module\":\"keras.optimizers\",\"registered_name\":null}" },
        { "a decay of a schedule is left, and refused by name",
          OF("Sequential", "{\"layers\":[]}"),
          "{\"optimizer_config\":" OF("SGD", "{\"learning_rate\":{},\"decay\":0.25}") "}",
          { "compile_config", "optimizer" },
          "{\"class_name\":\"SGD\",\"config\":{\"decay\":0.25,\"learning_rate\":{}}"
          ",\"module\":\"keras.optimizers\",\"registered_name\":null}" },
        { "a list of metrics for the only output",
          OF("Sequential", "{\"layers\":[]}"),
          "{\"optimizer\":null,\"metrics\":[[\"mae\",\"mse\"]]}",
          { "compile_config", "metrics" },
          "[\"mae\",\"mse\"]" },
        { "lists for two",
          OF("Sequential", "{\"layers\":[]}"),
          "{\"optimizer\":null,\"metrics\":[[\"mae\"],[\"mse\"]]}",
          { "compile_config", "metrics" },
          "[[\"mae\"],[\"mse\"]]" },
        { "wrapped functions",
          OF("Sequential", "{\"layers\":[]}"),
          "{\"weighted_metrics\":[" OF(
              "MeanMetricWrapper",
              "{\"name\":\"a\",\"fn\":\"binary_"
              "accuracy\"}") "," OF("MeanMetricWrapper", "{\"name\":\"b\",\"fn\":\"mine\"}") "]}",
          { "compile_config", "weighted_metrics" },
          "[{\"class_name\":\"BinaryAccuracy\",\"config\":{\"name\":\"a\"},\"module"
          "\":\"keras.metrics\",\"registered_name\":null},{\"class_name\":\"MeanMet"
          "ricWrapper\",\"config\":{\"fn\":\"mine\",\"name\":\"b\"},\"module\":\"ke"
          "ras.metrics\",\"registered_name\":null}]" },
        { "a loss by its class, with its function",
          OF("Sequential", "{\"layers\":[]}"),
          "{\"loss\":" OF("MeanSquaredError",
                          "{\"reduction\":\"auto\",\"fn\":\"mean_squared_error\"}") "}",
          { "compile_config", "loss" },
          "{\"class_name\":\"MeanSquaredError\",\"config\":{\"reduction\":\"sum_ove"
          "r_batch_size\"},\"module\":\"keras.losses\",\"registered_name\":null}" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *root = json_loads(cases[i].root, 0, NULL);
        json_t *training = cases[i].training ? json_loads(cases[i].training, 0, NULL) : NULL;
        assert_non_null(root);
        assert_true(training || !cases[i].training);
        must(keel_legacy_config(root, training));
        const json_t *part = json_object_get(root, cases[i].part[0]);
        if (cases[i].part[1]) part = json_object_get(part, cases[i].part[1]);
        char *text = json_dumps(part, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
        if (!text || strcmp(text, cases[i].want) != 0)
            fail_msg("%s: %s", cases[i].what, text ? text : "nothing");
        free(text);
        json_decref(root);
        json_decref(training);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_files_go_on_as_keras_does),
        cmocka_unit_test(what_does_not_fit_is_told),
        cmocka_unit_test(older_configs_become_what_a_file_has_today),
        cmocka_unit_test(states_are_written_by_their_name),
        cmocka_unit_test(damage_is_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
