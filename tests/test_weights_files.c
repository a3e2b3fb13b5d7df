/* Weights from files that Keras wrote without the model, or in its older formats
 * (golden/make_weights.py), and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "io/file.h"
#include "io/weights_h5.h"
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

static void no_weight_is_read_of_a_file_with_another_of_whole_numbers(void **state)
{
    const char *path = "whole.weights.h5";
    float kernel[2] = { 7, 7 };
    int64_t bias = 7;
    keel_weights *w;
    keel_new_file *f;
    keel_model *m;
    keel_tensor was, is;
    uint64_t n_bytes;
    (void)state;
    must(keel_weights_create(&w));
    must(keel_weights_add(w, "layers/dense/vars/0",
                          &(keel_tensor){ KEEL_FLOAT32, KEEL_SHAPE(2, 1), kernel }));
    must(keel_weights_add(w, "layers/dense/vars/1",
                          &(keel_tensor){ KEEL_INT64, KEEL_SHAPE(1), &bias }));
    must(keel_new_file_create(&f, path));
    must(keel_weights_write(w, f, 0, &n_bytes));
    must(keel_new_file_commit(f));
    keel_weights_destroy(w);
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 2))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_get_weight(m, "dense/kernel", &was));
    assert_int_equal(keel_model_load_weights(m, path), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "whole.weights.h5: 'dense/bias' is int64 in it"));
    must(keel_model_get_weight(m, "dense/kernel", &is));
    assert_memory_equal(was.data, is.data, sizeof kernel);
    keel_tensor_free(&was);
    keel_tensor_free(&is);
    keel_model_destroy(m);
    remove(path);
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

/* The loss of an epoch of the 20 rows of make_weights_state.py. */
static double train(keel_model *m)
{
    static float x[60], y[40];
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { 20, 3 } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 2, { 20, 2 } }, y };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 5, .no_shuffle = true };
    keel_strategy *s = NULL;
    keel_dataset *d = NULL;
    keel_history h = { 0 };
    for (int i = 0; i < 60; i++) x[i] = (float)((i * 37 + 11) % 101 - 50) / 32;
    for (int i = 0; i < 40; i++) y[i] = 1;
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    must(keel_fit(m, s, d, &o, &h));
    const double loss = h.value[0];
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    return loss;
}

/* Where Keras takes over the state of the optimizer, training goes on as in the file. */
static void the_optimizer_goes_on_as_in_keras(void **state)
{
    static const keel_state_loaded loaded[] = { KEEL_STATE_TAKEN, KEEL_STATE_ABSENT,
                                                KEEL_STATE_OTHER, KEEL_STATE_ABSENT };
    json_t *golden = golden_load("weights_state.json"), *c;
    size_t i;
    (void)state;
    assert_int_equal(json_array_size(golden), 4);
    json_array_foreach(golden, i, c)
    {
        keel_model *m;
        double rate;
        must(keel_model_load(&m, golden_path("%s", golden_text(c, "model"))));
        assert_int_equal(keel_model_state_loaded(m), KEEL_STATE_UNREAD);
        must(keel_model_load_weights(m, golden_path("%s", golden_text(c, "file"))));
        assert_int_equal(keel_model_load_weights(m, "golden/none.weights.h5"), KEEL_EIO);
        assert_int_equal(keel_model_state_loaded(m), loaded[i]); /* of the file that was loaded */
        must(keel_model_learning_rate(m, &rate));
        const double loss = train(m);
        if (!golden_near(loss, golden_number(c, "loss"), 1e-5) ||
            (double)keel_model_steps_done(m) != golden_number(c, "steps") ||
            !golden_near(rate, golden_number(c, "rate"), 1e-6))
            fail_msg("%s into %s: loss %.7g after %lld steps at %g, in Keras %.7g",
                     golden_text(c, "file"), golden_text(c, "model"), loss,
                     (long long)keel_model_steps_done(m), rate, golden_number(c, "loss"));
        keel_model_destroy(m);
    }
    json_decref(golden);
    assert_int_equal(keel_memory_live(), 0);
}

/* In Keras it has no variables yet, so those of a file are passed over: the rate that a program has
 * chosen stays, until it has trained. */
static void a_new_optimizer_keeps_its_own_state(void **state)
{
    const char *file = golden_path("weights_state.weights.h5");
    keel_model *m;
    double rate;
    (void)state;
    must(keel_model_load(&m, golden_path("weights_state_adam.keras")));
    must(keel_model_recompile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" } }));
    must(keel_model_load_weights(m, file));
    assert_int_equal(keel_model_state_loaded(m), KEEL_STATE_OTHER);
    must(keel_model_learning_rate(m, &rate));
    assert_true(rate > 0.00099 && rate < 0.00101 && keel_model_steps_done(m) == 0);
    train(m);
    must(keel_model_load_weights(m, file));
    assert_int_equal(keel_model_state_loaded(m), KEEL_STATE_TAKEN);
    assert_int_equal(keel_model_steps_done(m), 4);
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_that_keras_wrote),
        cmocka_unit_test(a_file_that_does_not_fit_changes_nothing),
        cmocka_unit_test(no_weight_is_read_of_a_file_with_another_of_whole_numbers),
        cmocka_unit_test(a_layer_of_a_file_with_more_weights_is_refused),
        cmocka_unit_test(idf_weights_are_those_of_the_file),
        cmocka_unit_test(the_optimizer_goes_on_as_in_keras),
        cmocka_unit_test(a_new_optimizer_keeps_its_own_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
