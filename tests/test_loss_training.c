/* Trainings by the losses that look at more than one number at a time (CTC, Dice, Tversky, Circle)
 * against the real Keras: on one to four devices the weights and the logs after three epochs, and
 * the same bits on all of them with a fixed number of shards. The numbers are
 * golden/loss_training.json, made by golden/make_loss_training.py, whose arithmetic is repeated
 * here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "golden.h"
#include "keel/keel.h"
#include "model/parts.h"
#include "must.h"

enum { BATCH = 16, ROWS = 26, EPOCHS = 3, WIDEST = 64, LANES = 4, SHARDS = 8 };

static const char *const devices[LANES] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };

/* ---- the models and rows of the script ------------------------------------------------------- */

static bool is(const char *kind, const char *other)
{
    return !strcmp(kind, other);
}

static bool of_images(const char *kind)
{
    return is(kind, "image") || is(kind, "soft") || is(kind, "hard") || is(kind, "classes");
}

static keel_shape shape_of(const char *kind)
{
    if (of_images(kind)) return KEEL_SHAPE(4, 4, 3);
    if (is(kind, "steps")) return KEEL_SHAPE(7, 3);
    if (is(kind, "ids")) return KEEL_SHAPE(3);
    if (is(kind, "terms")) return KEEL_SHAPE(3, 2);
    if (is(kind, "window")) return KEEL_SHAPE(4, 3);
    return KEEL_SHAPE(6);
}

static keel_symbol dense(keel_model *m, const char *name, int64_t units, const char *activation,
                         keel_symbol in)
{
    return must_call(m, "Dense",
                     KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_INT("units", units),
                               KEEL_ARG_STR("activation", activation)),
                     in);
}

/* Layers with a product of two narrow matrices that are trained instead of the kernel. */
static keel_symbol low_rank(keel_model *m, const char *kind, keel_symbol x)
{
    keel_symbol out;
    if (is(kind, "low"))
        return must_call(m, "Dense",
                         KEEL_ARGS(KEEL_ARG_STR("name", "out"), KEEL_ARG_INT("units", 4),
                                   KEEL_ARG_INT("lora_rank", 2),
                                   KEEL_ARG_STR("kernel_regularizer", "l2")),
                         x);
    if (is(kind, "back")) {
        must(keel_model_call_with(
            m, "ReversibleEmbedding",
            KEEL_ARGS(KEEL_ARG_STR("name", "out"), KEEL_ARG_INT("input_dim", 4),
                      KEEL_ARG_INT("output_dim", 6), KEEL_ARG_INT("lora_rank", 2),
                      KEEL_ARG_FLOAT("logit_soft_cap", 1.5)),
            KEEL_ARGS(KEEL_ARG_BOOL("reverse", true)), &x, 1, &out));
        return out;
    }
    if (is(kind, "ids")) {
        out = must_call(m, "Embedding",
                        KEEL_ARGS(KEEL_ARG_STR("name", "out"), KEEL_ARG_INT("input_dim", 5),
                                  KEEL_ARG_INT("output_dim", 4), KEEL_ARG_INT("lora_rank", 2)),
                        x);
        return must_call(m, "GlobalAveragePooling1D", NULL, out);
    }
    if (is(kind, "window")) {
        out = must_call(m, "Conv1D",
                        KEEL_ARGS(KEEL_ARG_STR("name", "out"), KEEL_ARG_INT("filters", 2),
                                  KEEL_ARG_INT("kernel_size", 2), KEEL_ARG_INT("strides", 2),
                                  KEEL_ARG_INT("lora_rank", 3), KEEL_ARG_FLOAT("lora_alpha", 2),
                                  KEEL_ARG_STR("kernel_regularizer", "l2")),
                        x);
        return must_call(m, "Flatten", NULL, out);
    }
    out =
        must_call(m, "EinsumDense",
                  KEEL_ARGS(KEEL_ARG_STR("name", "out"), KEEL_ARG_STR("equation", "abc,bcde->ade"),
                            KEEL_ARG_INTS("output_shape", 2, 2), KEEL_ARG_STR("bias_axes", "de"),
                            KEEL_ARG_INT("lora_rank", 3), KEEL_ARG_FLOAT("lora_alpha", 2),
                            KEEL_ARG_STR("kernel_regularizer", "l2")),
                  x);
    return must_call(m, "Flatten", NULL, out);
}

static bool is_renorm(const char *kind)
{
    return is(kind, "renorm") || is(kind, "clipped") || is(kind, "twice");
}

/* Normalization by the batch, corrected by moving statistics; a second call of the layer sees those
 * that the first one moved. */
static keel_symbol renorm(keel_model *m, const char *kind, keel_symbol x)
{
    x = must_call(m, "BatchNormalization",
                  KEEL_ARGS(KEEL_ARG_STR("name", "norm"), KEEL_ARG_BOOL("renorm", true),
                            KEEL_ARG_JSON("renorm_clipping",
                                          is(kind, "clipped")
                                              ? "{\"rmax\": 3.0, \"rmin\": 0.5, \"dmax\": 2.0}"
                                              : "null"),
                            KEEL_ARG_FLOAT("momentum", 0.75),
                            KEEL_ARG_FLOAT("renorm_momentum", 0.5),
                            KEEL_ARG_BOOL("scale", !is(kind, "twice"))),
                  dense(m, "body", 4, "linear", x));
    x = must_call(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "sigmoid")), x);
    if (!is(kind, "twice")) return x;
    must(keel_model_call_again(m, "norm", &x, 1, &x));
    return must_call(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "tanh")), x);
}

static bool is_low_rank(const char *kind)
{
    return is(kind, "low") || is(kind, "back") || is(kind, "ids") || is(kind, "terms") ||
           is(kind, "window");
}

static keel_model *model_of(const char *kind, keel_dtype real)
{
    const keel_shape in = shape_of(kind);
    keel_symbol x, out[2];
    keel_model *m;
    must(keel_model_create(&m, NULL, real, 1));
    must(keel_model_input(m, &in, NULL, &x));
    if (of_images(kind)) {
        const char *const shape = is(kind, "soft")   ? "linear"
                                  : is(kind, "hard") ? "hard_sigmoid"
                                                     : "sigmoid";
        out[0] =
            must_call(m, "Conv2D",
                      KEEL_ARGS(KEEL_ARG_STR("name", "out"), KEEL_ARG_INT("filters", 2),
                                KEEL_ARG_INT("kernel_size", 3), KEEL_ARG_STR("padding", "same"),
                                KEEL_ARG_STR("activation", shape)),
                      x);
        if (is(kind, "soft"))
            out[0] = must_call(m, "Softmax",
                               KEEL_ARGS(KEEL_ARG_STR("name", "shares"), KEEL_ARG_INT("axis", 1)),
                               out[0]);
    } else if (is_low_rank(kind))
        out[0] = low_rank(m, kind, x);
    else if (is_renorm(kind))
        out[0] = renorm(m, kind, x);
    else if (is(kind, "steps"))
        out[0] = dense(m, "out", 5, "linear", x);
    else {
        x = dense(m, "body", 8, "tanh", x);
        out[0] = dense(m, "out", 4, is(kind, "labels") ? "tanh" : "sigmoid", x);
        if (is(kind, "two")) out[1] = dense(m, "other", 3, "tanh", x);
    }
    must(keel_model_outputs(m, out, is(kind, "two") ? 2 : 1));
    for (int k = 0; k < m->n_weight; k++)
        for (int64_t n = 0; n < keel_shape_count(&m->weight[k].info.spec.shape); n++) {
            const bool root = strstr(m->weight[k].info.name, "stddev") != NULL;
            const double v = root + (double)((n * 7919 + 131 * k) % 1021 - 510) / 1024;
            if (real == KEEL_FLOAT64)
                ((double *)m->weight[k].data)[n] = v;
            else
                ((float *)m->weight[k].data)[n] = (float)v;
        }
    return m;
}

static int64_t number(int64_t i, int64_t k, int64_t step, int64_t modulus)
{
    return (i * 131 + k * 37 + i * k * step) % modulus;
}

static struct {
    float x[ROWS * WIDEST], overlap[ROWS * WIDEST], weight[ROWS];
    int32_t label[ROWS], symbol[ROWS * 3], class[ROWS * 8];
} rows;

static keel_tensor of_rows(keel_dtype dtype, keel_shape shape, void *data)
{
    for (int i = shape.rank++; i > 0; i--) shape.dim[i] = shape.dim[i - 1];
    shape.dim[0] = ROWS;
    return (keel_tensor){ dtype, shape, data };
}

static keel_dataset *rows_of(const char *kind, bool weighted)
{
    const keel_shape shape = shape_of(kind);
    const int64_t n = keel_shape_count(&shape);
    const keel_shape overlap = of_images(kind) ? KEEL_SHAPE(4, 4, 2) : KEEL_SHAPE(4);
    const int64_t n_overlap = keel_shape_count(&overlap);
    keel_dataset *d;
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t k = 0; k < n; k++)
            rows.x[i * n + k] = is(kind, "ids") ? (float)number(i, k, 7, 5)
                                                : (float)(number(i, k, 7, 256) - 128) / 128;
        for (int64_t k = 0; k < n_overlap; k++)
            rows.overlap[i * n_overlap + k] = (float)(number(i, k, 3, 3) / 2);
        for (int64_t k = 0; k < 8; k++) rows.class[i * 8 + k] = (int32_t)number(i, k, 3, 4);
        for (int64_t k = 0; k < 3; k++)
            rows.symbol[i * 3 + k] = (int32_t)(k <= i % 3 ? 1 + number(i, k, 5, 4) : 0);
        rows.label[i] = (int32_t)number(i, 0, 0, 5);
        rows.weight[i] = (float)(i % 4) / 2;
    }
    const keel_tensor x = of_rows(KEEL_FLOAT32, shape, rows.x);
    const keel_tensor of_overlap = of_rows(KEEL_FLOAT32, overlap, rows.overlap);
    const keel_tensor of_labels = of_rows(KEEL_INT32, KEEL_SHAPE(1), rows.label);
    const keel_tensor of_symbols = of_rows(KEEL_INT32, KEEL_SHAPE(3), rows.symbol);
    const bool two = is(kind, "two");
    keel_array_field field[4] = { { "x", KEEL_ROLE_INPUT, NULL, x, { 0 } } };
    int count = 1;
    if (is(kind, "steps"))
        field[count++] = (keel_array_field){ "y", KEEL_ROLE_TARGET, NULL, of_symbols, { 0 } };
    else if (is(kind, "classes"))
        field[count++] = (keel_array_field){
            "y", KEEL_ROLE_TARGET, NULL, of_rows(KEEL_INT32, KEEL_SHAPE(4, 2), rows.class), { 0 }
        };
    else if (is(kind, "labels"))
        field[count++] = (keel_array_field){ "y", KEEL_ROLE_TARGET, NULL, of_labels, { 0 } };
    else
        field[count++] = (keel_array_field){ "y", KEEL_ROLE_TARGET, NULL, of_overlap, { 0 } };
    if (two) field[count++] = (keel_array_field){ "z", KEEL_ROLE_TARGET, NULL, of_labels, { 0 } };
    if (weighted)
        field[count++] = (keel_array_field){ "w",
                                             KEEL_ROLE_WEIGHT,
                                             NULL,
                                             of_rows(KEEL_FLOAT32, (keel_shape){ 0 }, rows.weight),
                                             { 0 } };
    must(keel_dataset_from_fields(&d, field, count));
    return d;
}

/* ---- training -------------------------------------------------------------------------------- */

static keel_model *compiled(const json_t *k)
{
    const bool f64 = is(golden_text(k, "real"), "float64");
    keel_model *m = model_of(golden_text(k, "model"), f64 ? KEEL_FLOAT64 : KEEL_FLOAT32);
    json_t *losses = json_array(), *name;
    size_t i;
    json_array_foreach(json_object_get(k, "loss"), i, name) json_array_append_new(
        losses, json_pack("{s:s, s:O, s:O}", "module", "keras.losses", "class_name", name, "config",
                          json_array_get(json_object_get(k, "config"), i)));
    json_t *config = json_pack("{s:{s:s, s:{s:f, s:f}}, s:o, s:O}", "optimizer", "class_name",
                               "SGD", "config", "learning_rate", 0.0625, "momentum", 0.5, "loss",
                               losses, "loss_weights", json_object_get(k, "loss_weights"));
    assert_non_null(config);
    must(keel_compiled_from_config(m, config, false, &m->compiled));
    must(keel_compiled_state_create(m, &m->compiled));
    json_decref(config);
    return m;
}

static void fit(keel_model *m, const json_t *k, int lanes, int shards, keel_history *h)
{
    keel_strategy *s;
    keel_dataset *d =
        rows_of(golden_text(k, "model"), json_is_true(json_object_get(k, "weighted")));
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = EPOCHS,
                                       .no_shuffle = true };
    must(keel_strategy_create(&s, devices[lanes]));
    if (shards) must(keel_strategy_reproducible(s, shards));
    must(keel_fit(m, s, d, &options, h));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
}

static keel_model *train(const json_t *k, int lanes, int shards, keel_history *h)
{
    keel_model *m = compiled(k);
    fit(m, k, lanes, shards, h);
    return m;
}

static void compare(const json_t *k, size_t index, const keel_model *m, const keel_history *h)
{
    const bool f64 = is(golden_text(k, "real"), "float64");
    const double limit = f64 ? 1e-10 : 2e-5;
    const json_t *weights = json_object_get(k, "weights"), *epochs = json_object_get(k, "epochs");
    const char *loss = json_string_value(json_array_get(json_object_get(k, "loss"), 0));
    for (size_t e = 0; e < EPOCHS; e++) {
        const double got = h->value[e * (size_t)h->count];
        const double want = json_number_value(json_array_get(epochs, e));
        if (!golden_near(got, want, 1e-6)) /* Keras's logs are float32 */
            fail_msg("case %zu, %s: loss %.9g in epoch %zu instead of %.9g", index, loss, got, e,
                     want);
    }
    for (int i = 0; i < m->n_weight; i++) {
        const json_t *want = json_array_get(json_array_get(weights, (size_t)i), 1);
        const int64_t n = keel_shape_count(&m->weight[i].info.spec.shape);
        assert_int_equal(json_array_size(want), n);
        for (int64_t j = 0; j < n; j++) {
            const double got = golden_at(m->weight[i].data, f64, (size_t)j);
            const double wanted = json_number_value(json_array_get(want, (size_t)j));
            if (!(fabs(got - wanted) <= limit))
                fail_msg("case %zu, %s: %s[%lld] is %.12g instead of %.12g", index, loss,
                         m->weight[i].info.name, (long long)j, got, wanted);
        }
    }
}

static void compare_evaluation(const json_t *k, size_t index, keel_model *m, int lanes)
{
    const json_t *want = json_object_get(k, "evaluated");
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH };
    keel_strategy *s;
    keel_logs logs;
    keel_dataset *d =
        rows_of(golden_text(k, "model"), json_is_true(json_object_get(k, "weighted")));
    must(keel_strategy_create(&s, devices[lanes]));
    must(keel_evaluate(m, s, d, &options, &logs));
    if (json_is_number(want) && !golden_near(logs.value[0], json_number_value(want), 1e-6))
        fail_msg("case %zu: evaluated, the loss is %.9g instead of %.9g", index, logs.value[0],
                 json_number_value(want));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
}

static void any_number_of_devices_trains_as_keras(void **unused)
{
    (void)unused;
    json_t *cases = golden_load("loss_training.json"), *k;
    size_t index;
    json_array_foreach(cases, index, k) for (int lanes = 0; lanes < LANES; lanes++)
    {
        keel_history h;
        keel_model *m = train(k, lanes, 0, &h);
        compare(k, index, m, &h);
        compare_evaluation(k, index, m, lanes);
        keel_history_free(&h);
        keel_model_destroy(m);
    }
    assert_true(index > 30);
    json_decref(cases);
}

static void fixed_shards_give_the_same_bits_on_any_devices(void **unused)
{
    (void)unused;
    json_t *cases = golden_load("loss_training.json"), *k;
    size_t index;
    json_array_foreach(cases, index, k)
    {
        keel_model *m[LANES];
        keel_history h[LANES];
        for (int lanes = 0; lanes < LANES; lanes++) m[lanes] = train(k, lanes, SHARDS, &h[lanes]);
        for (int lanes = 1; lanes < LANES; lanes++) {
            for (size_t e = 0; e < EPOCHS; e++)
                assert_true(h[lanes].value[e * (size_t)h[0].count] ==
                            h[0].value[e * (size_t)h[0].count]);
            for (int i = 0; i < m[0]->n_weight; i++)
                assert_memory_equal(m[lanes]->weight[i].data, m[0]->weight[i].data,
                                    (size_t)keel_shape_count(&m[0]->weight[i].info.spec.shape) *
                                        keel_dtype_size(m[0]->dtype));
        }
        for (int lanes = 0; lanes < LANES; lanes++) {
            keel_history_free(&h[lanes]);
            keel_model_destroy(m[lanes]);
        }
    }
    json_decref(cases);
}

/* Files have the sum for Keras, and the frozen kernel and both matrices for Keel. */
static void low_rank_goes_on_from_a_file_of_keel_with_the_same_bits(void **unused)
{
    (void)unused;
    json_t *cases = golden_load("loss_training.json"), *k;
    size_t index;
    int seen = 0;
    json_array_foreach(cases, index, k)
    {
        keel_model *straight, *loaded;
        keel_history h[2];
        if (!is_low_rank(golden_text(k, "model"))) continue;
        straight = train(k, 1, SHARDS, &h[0]);
        keel_history_free(&h[0]);
        must(keel_model_save(straight, "low_rank.keras"));
        must(keel_model_load(&loaded, "low_rank.keras"));
        assert_int_equal(remove("low_rank.keras"), 0);
        fit(straight, k, 1, SHARDS, &h[0]);
        fit(loaded, k, 1, SHARDS, &h[1]);
        assert_true(h[0].value[EPOCHS - 1] == h[1].value[EPOCHS - 1]);
        for (int i = 0; i < straight->n_weight; i++)
            assert_memory_equal(straight->weight[i].data, loaded->weight[i].data,
                                (size_t)keel_shape_count(&loaded->weight[i].info.spec.shape) *
                                    keel_dtype_size(loaded->dtype));
        for (int i = 0; i < 2; i++) keel_history_free(&h[i]);
        keel_model_destroy(straight);
        keel_model_destroy(loaded);
        seen++;
    }
    assert_int_equal(seen, 5);
    json_decref(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_devices_trains_as_keras),
        cmocka_unit_test(fixed_shards_give_the_same_bits_on_any_devices),
        cmocka_unit_test(low_rank_goes_on_from_a_file_of_keel_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
