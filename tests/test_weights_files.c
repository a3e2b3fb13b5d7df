/* Weights from files that Keras wrote without the model, or in its older formats
 * (golden/make_weights.py), and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "io/file.h"
#include "keel/keel.h"
#include "must.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

/* Element k of weight i; `all` false: zeros. */
static void has_weights(const keel_model *m, bool all, const char *file)
{
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        const char *name = keel_model_weight_name(m, i);
        keel_tensor t;
        must(keel_model_get_weight(m, name, &t));
        for (int64_t k = 0; k < keel_shape_count(&t.shape); k++) {
            const double want = all ? (double)((37 * k + 29 * i + 11) % 101) / 32 : 0;
            if ((double)((float *)t.data)[k] != want)
                fail_msg("%s: %s [%d] is %g, in Keras %g", file, name, (int)k,
                         (double)((float *)t.data)[k], want);
        }
        keel_tensor_free(&t);
    }
}

static void weights_are_those_that_keras_wrote(void **state)
{
    static const char *const files[] = { "weights_new.weights.h5", "weights_old.h5",
                                         "weights_keras_2.h5",     "weights_whole.h5",
                                         "weights_other.h5",       "weights.keras" };
    (void)state;
    for (int i = 0; i < 6; i++) {
        keel_model *m;
        must(keel_model_load(&m, golden_path("weights.keras")));
        must(keel_model_load_weights(m, golden_path("%s", files[i])));
        has_weights(m, i < 5, files[i]);
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void a_file_that_does_not_fit_changes_nothing(void **state)
{
    static const struct {
        const char *file, *says;
        keel_status status;
    } cases[] = {
        { "sequential_plain.keras", "'conv/kernel' has the shape (3, 3, 3, 4)", KEEL_ESHAPE },
        { "train_mlp_sgd.keras", "there is no weight 'conv/kernel'", KEEL_EFORMAT },
        { "legacy_numbers.h5",
          "it has weights of 2 layers, the model has 5 such layers, and their names differ",
          KEEL_EFORMAT },
        { "layers.json", "HDF5", KEEL_EFORMAT },
        { "nothing.h5", "nothing.h5", KEEL_EIO },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_model *m;
        must(keel_model_load(&m, golden_path("weights.keras")));
        const keel_status s = keel_model_load_weights(m, golden_path("%s", cases[i].file));
        if (s != cases[i].status || !strstr(keel_error(), cases[i].says))
            fail_msg("%s: status %d: %s", cases[i].file, s, keel_error());
        has_weights(m, false, cases[i].file);
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static keel_model *one_layer(const char *layer, const keel_arg *args)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 4, 4))));
    must(keel_model_add(m, layer, args));
    return m;
}

/* Keras refuses such files, too. What a file has is in its order: without this, the moving mean
 * would be the file's beta. */
static void a_layer_of_a_file_with_more_weights_is_refused(void **state)
{
    static const char file[] = "more.weights.h5";
    const struct {
        const char *layer;
        const keel_arg *in_file, *in_model;
        const char *says;
    } cases[] = {
        { "BatchNormalization", NULL, KEEL_ARGS(KEEL_ARG_BOOL("center", false)),
          "layer 'batch_normalization' has more than its 3 weights" },
        { "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 2)),
          KEEL_ARGS(KEEL_ARG_INT("units", 2), KEEL_ARG_BOOL("use_bias", false)),
          "layer 'dense' has more than its 1 weight" },
        { "LSTM", KEEL_ARGS(KEEL_ARG_INT("units", 2)),
          KEEL_ARGS(KEEL_ARG_INT("units", 2), KEEL_ARG_BOOL("use_bias", false)), "weight" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_model *m = one_layer(cases[i].layer, cases[i].in_file);
        must(keel_model_save_weights(m, file));
        must(keel_model_load_weights(m, file));
        keel_model_destroy(m);
        m = one_layer(cases[i].layer, cases[i].in_model);
        const keel_status s = keel_model_load_weights(m, file);
        if (s != KEEL_EFORMAT || !strstr(keel_error(), cases[i].says) ||
            !strstr(keel_error(), file))
            fail_msg("%s: status %d: %s", cases[i].layer, s, s < 0 ? keel_error() : "");
        keel_model_destroy(m);
    }
    remove(file);
    assert_int_equal(keel_memory_live(), 0);
}

/* How rare words are is stored among the weights, though it is none: a layer of the same words with
 * other numbers takes those of the file, as in Keras. */
static void idf_weights_are_those_of_the_file(void **state)
{
    static const char *const idf[] = { "[1.0, 2.0, 4.0]", "[8.0, 0.5, 0.25]" };
    static const char *const file[] = { "rare.weights.h5", "again.weights.h5" };
    void *image[2];
    size_t n_bytes[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        keel_model *m;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
        must(keel_model_add(m, "InputLayer",
                            KEEL_ARGS(KEEL_ARG_INTS("shape", 1), KEEL_ARG_STR("dtype", "string"))));
        must(keel_model_add(m, "StringLookup",
                            KEEL_ARGS(KEEL_ARG_STR("output_mode", "tf_idf"),
                                      KEEL_ARG_JSON("vocabulary", "[\"a\", \"b\", \"c\"]"),
                                      KEEL_ARG_JSON("idf_weights", idf[i]))));
        must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 2))));
        if (i == 1) must(keel_model_load_weights(m, file[0]));
        must(keel_model_save_weights(m, file[i]));
        must(keel_file_read(file[i], 1 << 20, &image[i], &n_bytes[i]));
        keel_model_destroy(m);
    }
    remove(file[0]);
    remove(file[1]);
    assert_int_equal(n_bytes[0], n_bytes[1]);
    assert_memory_equal(image[0], image[1], n_bytes[0]);
    keel_free(image[0]);
    keel_free(image[1]);
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_that_keras_wrote),
        cmocka_unit_test(a_file_that_does_not_fit_changes_nothing),
        cmocka_unit_test(a_layer_of_a_file_with_more_weights_is_refused),
        cmocka_unit_test(idf_weights_are_those_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
