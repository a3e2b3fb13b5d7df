/* Models with open dims (None): layers that can be built on them or are refused, programs by the
 * shape of a batch, plans and files. Rows that differ in length are in test_ragged.c. */
#include "open_dims.h"
#include "model/model.h"

/* ---- what can be built -------------------------------------------------------------------------
 */

#define CONV               "\"filters\":4,\"kernel_size\":3"
#define STEPS              "{" CONV ",\"padding\":\"same\",\"return_sequences\":true}"
#define HELD(name, config) "{\"layer\":{\"class_name\":\"" name "\",\"config\":" config "}}"

static const struct {
    const char *layer, *config; /* behind an input of: */
    int64_t rank, dim[4];
    const char *want; /* the shape of its output */
    const char *says; /* or why there is none */
} built[] = {
    { "Conv2D", "{\"filters\":4,\"kernel_size\":3}", 3, { -1, -1, 3 }, "(None, None, 4)" },
    { "Conv2D", "{\"filters\":4,\"kernel_size\":3}", 3, { -1, 8, 3 }, "(None, 6, 4)" },
    { "DepthwiseConv2D", "{\"kernel_size\":3,\"strides\":2}", 3, { -1, -1, 3 }, "(None, None, 3)" },
    { "MaxPooling2D", "{}", 3, { -1, -1, 3 }, "(None, None, 3)" },
    { "AveragePooling2D",
      "{\"pool_size\":2,\"padding\":\"same\"}",
      3,
      { 7, -1, 3 },
      "(4, None, 3)" },
    { "GlobalAveragePooling2D", "{}", 3, { -1, -1, 3 }, "(3,)" },
    { "GlobalAveragePooling1D", "{\"keepdims\":true}", 2, { -1, 3 }, "(1, 3)" },
    { "ZeroPadding2D", "{}", 3, { -1, 5, 3 }, "(None, 7, 3)" },
    { "BatchNormalization", "{}", 3, { -1, -1, 3 }, "(None, None, 3)" },
    { "Conv3D", "{\"filters\":4,\"kernel_size\":3}", 4, { -1, 8, -1, 3 }, "(None, 6, None, 4)" },
    { "MaxPooling3D", "{}", 4, { -1, 8, -1, 3 }, "(None, 4, None, 3)" },
    { "UpSampling2D", "{\"interpolation\":\"bilinear\"}", 3, { -1, 4, 3 }, "(None, 8, 3)" },
    { "Cropping2D", "{\"cropping\":1}", 3, { -1, 4, 3 }, "(None, 2, 3)" },
    { "Conv2DTranspose",
      "{\"filters\":4,\"kernel_size\":3,\"strides\":2}",
      3,
      { -1, -1, 3 },
      "(None, None, 4)" },
    { "SeparableConv2D", "{\"filters\":4,\"kernel_size\":3}", 3, { -1, -1, 3 }, "(None, None, 4)" },
    { "SpatialDropout1D", "{\"rate\":0.5}", 2, { -1, 3 }, "(None, 3)" },
    { "Permute", "{\"dims\":[2,1]}", 2, { -1, 3 }, "(3, None)" },
    { "PReLU", "{\"shared_axes\":[1]}", 2, { -1, 3 }, "(None, 3)" },
    { "GlobalAveragePooling3D", "{}", 4, { -1, -1, -1, 3 }, "(3,)" },
    { "GlobalMaxPooling3D", "{}", 4, { -1, -1, -1, 3 }, "(3,)" },
    { "ZeroPadding3D", "{}", 4, { 2, -1, 5, 3 }, "(4, None, 7, 3)" },
    { "Dense", "{\"units\":5}", 2, { -1, 3 }, "(None, 5)" },
    { "Embedding", "{\"input_dim\":9,\"output_dim\":2}", 1, { -1 }, "(None, 2)" },
    { "Embedding",
      "{\"input_dim\":9,\"output_dim\":2,\"mask_zero\":true}",
      1,
      { -1 },
      "(None, 2)" },
    { "Masking", "{}", 2, { -1, 3 }, "(None, 3)" },
    { "Activation", "{\"activation\":\"gelu\"}", 1, { -1 }, "(None,)" },
    { "Softmax", "{}", 2, { -1, 3 }, "(None, 3)" },
    { "Dropout", "{\"rate\":0.5}", 2, { -1, 3 }, "(None, 3)" },
    { "Rescaling", "{\"scale\":0.5}", 3, { -1, -1, 3 }, "(None, None, 3)" },
    { "Flatten", "{}", 3, { -1, -1, 3 }, "(None,)" },
    { "Flatten", "{}", 2, { 4, 3 }, "(12,)" },
    { "Reshape", "{\"target_shape\":[-1,6]}", 2, { -1, 12 }, "(None, 6)" },
    { "TimeDistributed", HELD("Flatten", "{}"), 4, { -1, 2, 4, 3 }, "(None, 24)" },
    { "TimeDistributed", HELD("Conv2D", "{" CONV "}"), 4, { -1, -1, 8, 3 }, "(None, None, 6, 4)" },
    { "ConvLSTM1D", "{" CONV "}", 3, { -1, 8, 3 }, "(6, 4)" },
    { "ConvLSTM2D", "{" CONV "}", 4, { -1, 8, -1, 3 }, "(6, None, 4)" },
    { "ConvLSTM2D", STEPS, 4, { -1, -1, 8, 3 }, "(None, None, 8, 4)" },
    { "Dense", "{\"units\":5}", 1, { -1 }, NULL, "layer 'it': the shape of its weights would" },
    { "Conv2D",
      "{\"filters\":4,\"kernel_size\":3}",
      3,
      { 8, 8, -1 },
      NULL,
      "layer 'it': the shape" },
    { "PReLU", "{}", 2, { -1, 3 }, NULL, "layer 'it': the shape of its weights would" },
    { "BatchNormalization", "{}", 1, { -1 }, NULL, "layer 'it': the shape of its weights would" },
    { "Reshape", "{\"target_shape\":[4,3]}", 2, { -1, 3 }, NULL, "layer 'it'" },
};

static void layers_are_built_on_open_dims_or_refused_by_name(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof built / sizeof *built; i++) {
        keel_model *m = NULL;
        keel_symbol x, y;
        json_t *config = json_loads(built[i].config, 0, NULL);
        keel_arg args[8] = { KEEL_ARG_STR("name", "it") };
        char value[4][128], shape[96];
        const char *key;
        json_t *v;
        int n = 1;
        json_object_foreach(config, key, v)
        {
            value[n - 1][json_dumpb(v, value[n - 1], 127, JSON_ENCODE_ANY)] = 0;
            args[n] = (keel_arg)KEEL_ARG_JSON(key, value[n - 1]);
            n++;
        }
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
        const keel_shape in = keel_shape_of((int)built[i].rank, built[i].dim);
        must(keel_model_input(m, &in, NULL, &x));
        const keel_status s = keel_model_call(m, built[i].layer, args, &x, 1, &y);
        if (built[i].want) {
            must(s);
            must(keel_model_outputs(m, &y, 1));
            keel_shape got;
            must(keel_model_output_shape(m, 0, &got));
            keel_shape_text(shape, &got);
            if (strcmp(shape, built[i].want)) fail_msg("%s: %s", built[i].layer, shape);
        } else if (s != KEEL_ESHAPE || !strstr(keel_error(), built[i].says) ||
                   !strstr(keel_error(), "None")) {
            fail_msg("%s: %s (%s)", built[i].layer, keel_status_name(s), keel_error());
        }
        keel_model_destroy(m);
        json_decref(config);
    }
}

enum { MET = 5, WIDE = 3 };

/* [None, 3] and [5, 3]: what the layer says comes out, and what it makes of rows of other lengths.
 * Keras's layers say None, its operations the number; both fail when rows do not fit. */
static const struct {
    const char *layer, *shape; /* as Keras has it */
    int64_t length;            /* of the open input's rows */
    bool runs;
} met[] = {
    { "Add", "(None, 3)", MET, true }, { "Add", "(None, 3)", 1, true },
    { "Add", "(None, 3)", 7, false },  { "ops.Add", "(5, 3)", MET, true },
    { "ops.Add", "(5, 3)", 1, true },  { "ops.Add", "(5, 3)", 7, false },
};

static void an_open_dim_that_meets_a_number_is_what_the_rows_have(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof met / sizeof *met; i++) {
        float x[2 * 7 * WIDE], y[2 * MET * WIDE];
        const int64_t length = met[i].length;
        char shape[96];
        keel_symbol in[2], out;
        keel_dataset *d;
        keel_tensor got;
        keel_model *m;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
        must(keel_model_input(m, KEEL_DIMS(KEEL_DIM_OPEN, WIDE),
                              KEEL_ARGS(KEEL_ARG_STR("name", "x")), &in[0]));
        must(keel_model_input(m, KEEL_DIMS(MET, WIDE), KEEL_ARGS(KEEL_ARG_STR("name", "y")),
                              &in[1]));
        must(keel_model_call(m, met[i].layer, KEEL_ARGS(KEEL_ARG_STR("name", "sum")), in, 2, &out));
        must(keel_model_outputs(m, &out, 1));
        keel_shape_text(shape, &keel_model_spec(m, out)->shape);
        assert_string_equal(shape, met[i].shape);
        for (int k = 0; k < 2 * 7 * WIDE; k++) x[k] = (float)k;
        for (int k = 0; k < 2 * MET * WIDE; k++) y[k] = 100 * (float)k;
        const keel_array_field f[2] = {
            { "x", KEEL_ROLE_INPUT, NULL, { KEEL_FLOAT32, { 3, { 2, length, WIDE } }, x } },
            { "y", KEEL_ROLE_INPUT, NULL, { KEEL_FLOAT32, { 3, { 2, MET, WIDE } }, y } }
        };
        must(keel_dataset_from_fields(&d, f, 2));
        const keel_status s = keel_predict(m, strategy[1], d, NULL, &got);
        if (!met[i].runs) {
            assert_int_equal(s, KEEL_ESHAPE);
            assert_non_null(strstr(keel_error(), "layer 'sum'"));
        } else {
            must(s);
            for (int k = 0; k < 2 * MET * WIDE; k++) {
                const int64_t row = k / (MET * WIDE), place = k / WIDE % MET % length;
                const float want = x[(row * length + place) * WIDE + k % WIDE] + y[k];
                assert_true(((float *)got.data)[k] == want);
            }
            keel_tensor_free(&got);
        }
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
}

/* Frames of 4x4, which a ConvLSTM and a TimeDistributed call one by one. */
static keel_model *frames(int64_t steps)
{
    static const char *const inner =
        "{\"class_name\":\"Conv2D\",\"config\":{\"filters\":2,\"kernel_size\":3}}";
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", steps, 4, 4, 1))));
    must(keel_model_add(m, "ConvLSTM2D",
                        KEEL_ARGS(KEEL_ARG_INT("filters", 3), KEEL_ARG_INT("kernel_size", 2),
                                  KEEL_ARG_STR("padding", "same"),
                                  KEEL_ARG_BOOL("return_sequences", true))));
    must(keel_model_add(m, "TimeDistributed", KEEL_ARGS(KEEL_ARG_JSON("layer", inner))));
    return m;
}

static void steps_of_an_open_number_are_those_of_a_known_one(void **unused)
{
    enum { ROWS = 5, T = 3 };
    (void)unused;
    float x[ROWS * T * 16];
    const keel_tensor data = { KEEL_FLOAT32, { 5, { ROWS, T, 4, 4, 1 } }, x };
    keel_tensor want = { 0 }, got;
    keel_dataset *d;
    for (int i = 0; i < ROWS * T * 16; i++) x[i] = (float)(i * 37 % 101) / 101;
    must(keel_dataset_from_arrays(&d, &data, NULL, NULL));
    for (int lanes = 0; lanes <= LANES; lanes++) {
        keel_model *m = frames(lanes ? KEEL_DIM_OPEN : T);
        must(keel_predict(m, strategy[lanes ? lanes - 1 : 0], d, NULL, lanes ? &got : &want));
        keel_model_destroy(m);
        if (!lanes) continue;
        assert_true(keel_shape_equal(&got.shape, &want.shape));
        assert_true(apart(got.data, want.data, keel_shape_count(&want.shape)) < 1e-6);
        keel_tensor_free(&got);
    }
    keel_tensor_free(&want);
    keel_dataset_destroy(d);
}

static void flatten_into_dense_is_refused_and_the_model_stays(void **unused)
{
    (void)unused;
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", KEEL_DIM_OPEN, 4))));
    must(keel_model_add(m, "Flatten", NULL));
    assert_int_equal(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 2))), KEEL_ESHAPE);
    assert_non_null(strstr(keel_error(), "rows of (None,)"));
    assert_int_equal(keel_model_layer_count(m), 2);
    assert_int_equal(keel_model_weight_count(m), 0);
    keel_model_destroy(m);
}

/* ---- training, plans and files -----------------------------------------------------------------
 */

static void images_of_two_sizes_train_as_in_keras(void **unused)
{
    (void)unused;
    for (int lanes = 1; lanes <= LANES; lanes++) {
        keel_model *m = load("images");
        keel_tensor first = { 0 };
        for (int k = 0; k < 2; k++) {
            keel_tensor x = stored("images_%d", k), y = stored("images_%d_labels", k);
            keel_dataset *d;
            keel_program_counts counts;
            const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = EPOCHS,
                                         .no_shuffle = true, .counts = &counts };
            must(keel_dataset_from_arrays(&d, &x, &y, NULL));
            must(keel_fit(m, strategy[lanes - 1], d, &o, NULL));
            assert_int_equal(counts.training, 1);
            assert_int_equal(counts.inference, 0);
            keel_dataset_destroy(d);
            keel_tensor_free(&y);
            if (k == 0)
                first = x;
            else
                keel_tensor_free(&x);
        }
        compare_weights(m, "images", lanes);
        keel_tensor want = stored("images_predicted"), got;
        keel_dataset *d;
        must(keel_dataset_from_arrays(&d, &first, NULL, NULL));
        must(keel_predict(m, strategy[lanes - 1], d, NULL, &got));
        assert_true(apart(got.data, want.data, keel_shape_count(&want.shape)) < 1e-5);
        keel_tensor_free(&want);
        keel_tensor_free(&got);
        keel_tensor_free(&first);
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
}

/* Reshape to pairs serves rows of even length only, which the third is not. */
static void a_shape_that_cannot_be_compiled_fails_its_step_only(void **unused)
{
    (void)unused;
    const float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3 }, y[4] = { 1, 2, 3, 4 };
    const int64_t at[5] = { 0, 4, 6, 9, 12 }; /* lengths 4, 2, 3, 3 */
    const keel_array_field f[2] = {
        { "x",
          KEEL_ROLE_INPUT,
          NULL,
          { KEEL_FLOAT32, { 2, { 12, 1 } }, (void *)x },
          { KEEL_INT64, { 1, { 5 } }, (void *)at } },
        { "y", KEEL_ROLE_TARGET, NULL, { KEEL_FLOAT32, { 2, { 4, 1 } }, (void *)y } },
    };
    float kernel[2][2] = { { 0 } };
    for (int k = 0; k < 2; k++) { /* all of the data; then what the first step does */
        keel_dataset *d;
        keel_model *m;
        keel_history h = { 0 };
        keel_program_counts c;
        must(keel_dataset_from_fields(&d, f, 2));
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", KEEL_DIM_OPEN, 1))));
        must(keel_model_add(m, "Reshape", KEEL_ARGS(KEEL_ARG_INTS("target_shape", -1, 2))));
        must(keel_model_add(m, "GlobalAveragePooling1D", NULL));
        must(keel_model_add(m, "Dense",
                            KEEL_ARGS(KEEL_ARG_INT("units", 1), KEEL_ARG_STR("name", "d"))));
        must(keel_model_compile(
            m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } } }));
        const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 1, .no_shuffle = true,
                                     .steps_per_epoch = 2 * k, .counts = &c };
        const keel_status s = keel_fit(m, strategy[3], d, &o, &h);
        if (k) must(s);
        if (!k) {
            assert_int_equal(s, KEEL_ESHAPE);
            assert_non_null(strstr(keel_error(), "step 3 of epoch 1"));
            assert_non_null(strstr(keel_error(), "layer 'reshape'"));
        }
        assert_int_equal(h.steps, 2);
        assert_int_equal(c.training, 2);
        keel_tensor w;
        must(keel_model_get_weight(m, "d/kernel", &w));
        memcpy(kernel[k], w.data, sizeof kernel[k]);
        keel_tensor_free(&w);
        keel_history_free(&h);
        keel_model_destroy(m);
        keel_dataset_destroy(d);
    }
    assert_memory_equal(kernel[0], kernel[1], sizeof *kernel);
    assert_true(kernel[0][0] != 0);
}

static void a_plan_wants_to_know_the_shape(void **unused)
{
    (void)unused;
    keel_model *m = load("images");
    keel_plan p, larger;
    const keel_shape good = KEEL_SHAPE(20, 24, 2), twice = KEEL_SHAPE(40, 24, 2);
    const keel_shape bad[] = {
        KEEL_SHAPE(20, 24, 3), KEEL_SHAPE(20, 24), { -1 }, KEEL_SHAPE(20, -1, 2)
    };
    assert_int_equal(keel_plan_make(&p, m, NULL, 64, 8, KEEL_KEEP, NULL), KEEL_ESHAPE);
    assert_non_null(strstr(keel_error(), "'image'"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(keel_plan_make(&p, m, NULL, 64, 8, KEEL_KEEP, &bad[i]), KEEL_ESHAPE);
    must(keel_plan_make(&p, m, NULL, 64, 8, KEEL_KEEP, &good));
    must(keel_plan_make(&larger, m, NULL, 64, 8, KEEL_KEEP, &twice));
    assert_true(larger.activation_bytes[0] > p.activation_bytes[0]);
    assert_int_equal(larger.weight_bytes, p.weight_bytes);
    keel_plan_free(&p);
    keel_plan_free(&larger);
    keel_model_destroy(m);
}

static void a_saved_model_has_null_for_open_dims(void **unused)
{
    (void)unused;
    const char *path = files_path("open.keras");
    keel_model *m = load("images");
    keel_shape shape;
    char *text;
    must(keel_model_save(m, path));
    keel_model_destroy(m);
    must(keel_model_load(&m, path));
    must(keel_model_input_shape(m, 0, &shape));
    assert_true(keel_shape_equal(&shape, &(keel_shape){ 3, { -1, -1, 2 } }));
    must(keel_model_summary(m, &text));
    assert_non_null(strstr(text, "(None, None, None, 4)"));
    keel_model_summary_free(text);
    keel_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_built_on_open_dims_or_refused_by_name),
        cmocka_unit_test(an_open_dim_that_meets_a_number_is_what_the_rows_have),
        cmocka_unit_test(steps_of_an_open_number_are_those_of_a_known_one),
        cmocka_unit_test(flatten_into_dense_is_refused_and_the_model_stays),
        cmocka_unit_test(images_of_two_sizes_train_as_in_keras),
        cmocka_unit_test(a_shape_that_cannot_be_compiled_fails_its_step_only),
        cmocka_unit_test(a_plan_wants_to_know_the_shape),
        cmocka_unit_test(a_saved_model_has_null_for_open_dims),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
