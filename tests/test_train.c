/* fit, evaluate and predict as a user meets them: every row once, the same bits again, and failures
 * that never happened. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>
#include "base/memory.h"
#include "keel/keel.h"
#include "must.h"

enum { ROWS = 50, FEATURES = 6, CLASSES = 3, LANES = 8 };
static float x[ROWS * FEATURES], y[ROWS], ones[ROWS];
static keel_strategy *strategy[LANES + 1];

static int start(void **unused)
{
    (void)unused;
    char devices[32];
    for (int i = 1; i <= LANES; i++) {
        snprintf(devices, sizeof devices, i == 1 ? "cpu:0" : "cpu:0-%d", i - 1);
        if (keel_strategy_create(&strategy[i], devices) < 0) return -1;
    }
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = sinf((float)i * 1.3f);
    for (int i = 0; i < ROWS; i++) {
        y[i] = (float)(i * 7 % CLASSES);
        ones[i] = 1;
    }
    return 0;
}

static int finish(void **unused)
{
    (void)unused;
    for (int i = 1; i <= LANES; i++) keel_strategy_destroy(strategy[i]);
    return 0;
}

static keel_model *network(const char *optimizer)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 11));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 5))));
    must(keel_model_add(m, "BatchNormalization", NULL));
    must(keel_model_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "tanh"))));
    must(keel_model_add(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.25))));
    must(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax"))));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { optimizer },
                                                .loss = { { "sparse_categorical_crossentropy" } },
                                                .metrics = { { "accuracy" } } }));
    return m;
}

static keel_dataset *rows_of(int64_t n, float *weight)
{
    keel_dataset *d;
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { n, FEATURES } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 1, { n } }, y };
    const keel_tensor tw = { KEEL_FLOAT32, { 1, { n } }, weight };
    must(keel_dataset_from_arrays(&d, &tx, &ty, weight ? &tw : NULL));
    return d;
}

/* All weights of a model, one after the other. */
static int64_t weights_of(const keel_model *m, float *out)
{
    int64_t n = 0;
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor t;
        int64_t count = 1;
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &t));
        for (int k = 0; k < t.shape.rank; k++) count *= t.shape.dim[k];
        memcpy(out + n, t.data, (size_t)count * sizeof(float));
        n += count;
        keel_tensor_free(&t);
    }
    return n;
}

static void same_weights(const keel_model *a, const keel_model *b, const char *what)
{
    float u[256], v[256];
    const int64_t n = weights_of(a, u);
    assert_int_equal(n, weights_of(b, v));
    if (memcmp(u, v, (size_t)n * sizeof *u)) fail_msg("%s: the weights differ", what);
}

/* ---- evaluate and predict -----------------------------------------------------------------------
 */

static void predict_gives_n_rows_in_order_and_evaluate_counts_each_once(void **unused)
{
    (void)unused;
    keel_model *m = network("sgd");
    for (int64_t n = 1; n <= ROWS; n += n < 20 ? 1 : 7) {
        keel_dataset *d = rows_of(n, NULL);
        keel_tensor one;
        keel_logs logs;
        must(keel_predict(m, strategy[1], d, NULL, &one));
        assert_int_equal(one.shape.dim[0], n);
        double right = 0, loss = 0;
        for (int64_t i = 0; i < n; i++) {
            const float *p = (const float *)one.data + i * CLASSES;
            int best = 0;
            for (int c = 1; c < CLASSES; c++)
                if (p[c] > p[best]) best = c;
            right += best == (int)y[i];
            loss -= log(p[(int)y[i]]);
        }
        for (int lanes = 1; lanes <= LANES; lanes++)
            for (int64_t batch = 1; batch <= 17; batch += 4) {
                const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = batch };
                keel_tensor t;
                must(keel_predict(m, strategy[lanes], d, &o, &t));
                for (int64_t i = 0; i < n * CLASSES; i++)
                    assert_true(fabsf(((float *)t.data)[i] - ((float *)one.data)[i]) < 1e-6);
                keel_tensor_free(&t);
                must(keel_evaluate(m, strategy[lanes], d, &o, &logs));
                assert_string_equal(logs.name[1], "accuracy");
                assert_true(fabs(logs.value[0] - loss / (double)n) < 1e-5);
                assert_true(fabs(logs.value[1] - right / (double)n) < 1e-9);
            }
        keel_tensor_free(&one);
        keel_dataset_destroy(d);
    }
    keel_model_destroy(m);
}

typedef struct uncounted {
    int64_t at, rows;
} uncounted;

static keel_status next_uncounted(void *context, void *out, void *unused, float *weight,
                                  int64_t capacity, int64_t *rows)
{
    uncounted *u = context;
    (void)unused, (void)weight;
    *rows = capacity < u->rows - u->at ? capacity : u->rows - u->at;
    memcpy(out, x + u->at * FEATURES, (size_t)*rows * FEATURES * sizeof(float));
    u->at += *rows;
    return *rows ? KEEL_OK : KEEL_END;
}

static keel_status again(void *context)
{
    ((uncounted *)context)->at = 0;
    return KEEL_OK;
}

static void predict_of_a_stream_that_does_not_say_its_rows_gives_all_of_them(void **unused)
{
    (void)unused;
    keel_model *m = network("sgd");
    for (int64_t n = 1; n <= ROWS; n += n < 20 ? 3 : 17) {
        uncounted u = { .rows = n };
        const keel_generator g = { .size = sizeof g,
                                   .context = &u,
                                   .x_shape = { 1, { FEATURES } },
                                   .max_rows = 3,
                                   .next = next_uncounted,
                                   .reset = again };
        keel_dataset *d = rows_of(n, NULL), *stream;
        keel_tensor want, got;
        must(keel_dataset_from_generator(&stream, &g));
        for (int64_t batch = 1; batch <= 17; batch += 4) {
            const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = batch };
            must(keel_predict(m, strategy[2], d, &o, &want));
            must(keel_predict(m, strategy[2], stream, &o, &got));
            assert_int_equal(got.shape.dim[0], n);
            assert_memory_equal(got.data, want.data, (size_t)n * CLASSES * sizeof(float));
            keel_tensor_free(&want);
            keel_tensor_free(&got);
        }
        keel_dataset_destroy(d);
        keel_dataset_destroy(stream);
    }
    keel_model_destroy(m);
}

static void the_regulariser_of_a_frozen_layer_is_no_part_of_the_loss(void **unused)
{
    (void)unused;
    const int64_t n = 8;
    keel_dataset *d = rows_of(n, NULL);
    keel_model *m;
    keel_tensor p;
    keel_logs logs;
    keel_history h = { 0 };
    double loss = 0;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 11));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    must(keel_model_add(m, "Dense",
                        KEEL_ARGS(KEEL_ARG_INT("units", 2), KEEL_ARG_BOOL("trainable", false),
                                  KEEL_ARG_STR("kernel_regularizer", "l2"))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE,
                            .optimizer = { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0)) },
                            .loss = { { "mse" } } }));
    must(keel_predict(m, strategy[1], d, NULL, &p));
    for (int64_t i = 0; i < n; i++) loss += pow(((float *)p.data)[i] - y[i], 2) / (double)n;
    must(keel_evaluate(m, strategy[1], d, NULL, &logs));
    must(keel_fit(m, strategy[1], d, NULL, &h));
    assert_true(fabs(logs.value[0] - loss) < 1e-5 * loss);
    assert_true(fabs(h.value[0] - loss) < 1e-5 * loss);
    keel_tensor_free(&p);
    keel_history_free(&h);
    keel_model_destroy(m);
    keel_dataset_destroy(d);
}

/* A network with BatchNormalization, maybe behind a mask that leaves all places: no value is 1e9.
 */
static keel_model *normalized(bool masked, const keel_arg *args)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 11));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    must(keel_model_add(m, "Reshape", KEEL_ARGS(KEEL_ARG_INTS("target_shape", FEATURES, 1))));
    if (masked) must(keel_model_add(m, "Masking", KEEL_ARGS(KEEL_ARG_FLOAT("mask_value", 1e9))));
    must(keel_model_add(m, "BatchNormalization", args));
    must(keel_model_add(m, "Flatten", NULL));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
    return m;
}

/* Where all places count, a mask changes nothing but the order in which they are summed. */
static void batch_normalization_of_masked_values_is_that_of_the_places_that_count(void **unused)
{
    (void)unused;
    keel_tensor p[2];
    double loss[2];
    for (int masked = 0; masked < 2; masked++) {
        keel_model *m = normalized(masked, NULL);
        keel_history h = { 0 };
        keel_dataset *d = rows_of(5, NULL);
        must(keel_predict(m, strategy[2], d, NULL, &p[masked]));
        must(keel_fit(m, strategy[2], d, NULL, &h));
        loss[masked] = h.value[0];
        keel_history_free(&h);
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
    assert_memory_equal(p[0].data, p[1].data, 5 * sizeof(float));
    assert_true(fabs(loss[0] - loss[1]) < 1e-6 * loss[0]);
    for (int i = 0; i < 2; i++) keel_tensor_free(&p[i]);
}

/* Rows of channels of which each counts or not, as steps are that TimeDistributed calls: what they
 * train is what rows of one place train. */
static void batch_normalization_of_masked_rows_without_places_is_that_of_one_place(void **unused)
{
    (void)unused;
    keel_tensor gamma[2];
    double loss[2];
    for (int placed = 0; placed < 2; placed++) {
        const keel_arg mask_value[] = { KEEL_ARG_FLOAT("mask_value", 0), { 0 } };
        keel_history h = { 0 };
        keel_dataset *d = rows_of(9, NULL);
        keel_model *m;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 11));
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
        must(keel_model_add(m, "ReLU", KEEL_ARGS(KEEL_ARG_FLOAT("threshold", 0.97))));
        if (placed)
            must(keel_model_add(m, "Reshape",
                                KEEL_ARGS(KEEL_ARG_INTS("target_shape", 1, FEATURES))));
        must(keel_model_add(m, "Masking", mask_value));
        must(keel_model_add(m, "BatchNormalization", NULL));
        must(keel_model_add(m, "Flatten", NULL));
        must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
        must(keel_model_compile(
            m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
        must(keel_fit(m, strategy[2], d,
                      &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 4, .epochs = 2 }, &h));
        must(keel_model_get_weight(m, "batch_normalization/gamma", &gamma[placed]));
        loss[placed] = h.value[0];
        keel_history_free(&h);
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
    assert_memory_equal(gamma[0].data, gamma[1].data, FEATURES * sizeof(float));
    assert_true(loss[0] == loss[1]);
    for (int i = 0; i < 2; i++) keel_tensor_free(&gamma[i]);
}

static void what_batch_normalization_cannot_do_with_a_mask_is_refused_by_name(void **unused)
{
    static const struct {
        keel_arg arg;
        const char *says;
    } cases[] = { { KEEL_ARG_BOOL("renorm", true), "with renorm" },
                  { KEEL_ARG_INT("axis", 1), "the last axis only" } };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_arg args[] = { cases[i].arg, { 0 } };
        keel_model *m = normalized(true, args);
        keel_history h = { 0 };
        keel_dataset *d = rows_of(5, NULL);
        assert_int_equal(keel_fit(m, strategy[2], d, NULL, &h), KEEL_EUNSUP);
        if (!strstr(keel_error(), cases[i].says)) fail_msg("%s", keel_error());
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
}

/* As in Keras, whose optimizers leave out what has no gradient, its decay included. */
static void a_weight_that_no_loss_reaches_stays_and_is_named(void **unused)
{
    (void)unused;
    keel_model *m;
    keel_symbol in, out[2];
    keel_tensor before[2], after[2];
    keel_history h;
    static const char *const names[] = { "idle/kernel", "busy/kernel" };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 11));
    must(keel_model_input(m, KEEL_DIMS(FEATURES), NULL, &in));
    must(keel_model_call(m, "Dense",
                         KEEL_ARGS(KEEL_ARG_STR("name", "idle"), KEEL_ARG_INT("units", 3)), &in, 1,
                         &out[0]));
    must(keel_model_call(m, "Dense",
                         KEEL_ARGS(KEEL_ARG_STR("name", "busy"), KEEL_ARG_INT("units", 1)), &in, 1,
                         &out[1]));
    must(keel_model_outputs(m, out, 2));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "AdamW" },
                                                .loss = { { "mse", .output = 1 } } }));
    keel_dataset *d = rows_of(20, NULL);
    for (int i = 0; i < 2; i++) must(keel_model_get_weight(m, names[i], &before[i]));
    must(keel_fit(m, strategy[2], d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8 }, &h));
    for (int i = 0; i < 2; i++) must(keel_model_get_weight(m, names[i], &after[i]));
    assert_memory_equal(before[0].data, after[0].data, FEATURES * 3 * sizeof(float));
    assert_memory_not_equal(before[1].data, after[1].data, FEATURES * sizeof(float));
    assert_non_null(h.note);
    assert_non_null(strstr(h.note, "no loss depends on 'idle/"));
    assert_null(strstr(h.note, "busy"));
    for (int i = 0; i < 2; i++) {
        keel_tensor_free(&before[i]);
        keel_tensor_free(&after[i]);
    }
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void the_same_lanes_give_the_same_bits(void **unused)
{
    (void)unused;
    for (int lanes = 1; lanes <= LANES; lanes += 3) {
        keel_model *m[2];
        keel_dataset *d = rows_of(ROWS, NULL);
        for (int k = 0; k < 2; k++) {
            m[k] = network("adamw");
            must(keel_fit(
                m[k], strategy[lanes], d,
                &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 16, .epochs = 3, .seed = 5 },
                NULL));
        }
        same_weights(m[0], m[1], "run to run");
        keel_model_destroy(m[0]);
        keel_model_destroy(m[1]);
        keel_dataset_destroy(d);
    }
}

/* ---- failures that never happened ---------------------------------------------------------------
 */

typedef struct script { /* a generator of batches of 8 rows that fails, ends, or gives a NaN */
    int at, fail_at, end_at, nan_at;
} script;

static keel_status next_batch(void *context, void *px, void *py, float *weight, int64_t capacity,
                              int64_t *rows)
{
    script *s = context;
    (void)weight;
    if (s->at == s->fail_at) return KEEL_ECALLBACK;
    if (s->at == s->end_at) return KEEL_END;
    assert_true(capacity >= 8);
    memcpy(px, x + s->at % 5 * 8 * FEATURES, 8 * FEATURES * sizeof(float));
    memcpy(py, y + s->at % 5 * 8, 8 * sizeof(float));
    if (s->at == s->nan_at) ((float *)px)[3 * FEATURES] = NAN;
    s->at++;
    *rows = 8;
    return KEEL_OK;
}

static keel_dataset *scripted(script *s)
{
    keel_dataset *d;
    const keel_generator g = { .size = sizeof g,
                               .context = s,
                               .x_shape = { 1, { FEATURES } },
                               .has_y = true,
                               .max_rows = 8,
                               .next = next_batch,
                               .name = "script" };
    must(keel_dataset_from_generator(&d, &g));
    return d;
}

static keel_status fit_script(keel_model *m, int lanes, script s)
{
    keel_dataset *d = scripted(&s);
    const keel_status status =
        keel_fit(m, strategy[lanes], d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .seed = 2 }, NULL);
    keel_dataset_destroy(d);
    return status;
}

static void a_failed_step_leaves_the_weights_as_before_it(void **unused)
{
    (void)unused;
    const struct {
        const char *what;
        script bad;
        keel_status want;
        const char *says;
    } cases[] = {
        { "the generator fails in step 4", { 0, 3, -1, -1 }, KEEL_ECALLBACK, "script" },
        { "a NaN in the data of step 3", { 0, -1, 9, 2 }, KEEL_ENUMERIC, "step 3" },
        { "a NaN in the first step", { 0, -1, 9, 0 }, KEEL_ENUMERIC, "step 1" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int lanes = 1; lanes <= 4; lanes += 3) {
            keel_model *bad = network("adam"), *good = network("adam");
            const int steps =
                cases[i].bad.fail_at >= 0 ? cases[i].bad.fail_at : cases[i].bad.nan_at;
            assert_int_equal(fit_script(bad, lanes, cases[i].bad), cases[i].want);
            if (!strstr(keel_error(), cases[i].says))
                fail_msg("%s: the error is '%s'", cases[i].what, keel_error());
            if (steps > 0) must(fit_script(good, lanes, (script){ 0, -1, steps, -1 }));
            same_weights(bad, good, cases[i].what);
            /* and both go on alike: the optimizer's state is as before the step as well */
            must(fit_script(bad, lanes, (script){ 0, -1, 4, -1 }));
            must(fit_script(good, lanes, (script){ 0, -1, 4, -1 }));
            same_weights(bad, good, "going on after it");
            keel_model_destroy(bad);
            keel_model_destroy(good);
        }
}

static void a_step_without_weight_moves_nothing(void **unused)
{
    (void)unused;
    float weight[ROWS];
    keel_model *with = network("adam"), *without = network("adam");
    for (int i = 0; i < ROWS; i++) weight[i] = i < 16 ? 1 : 0; /* steps 1 and 2, then nothing */
    keel_dataset *all = rows_of(ROWS, weight), *first = rows_of(16, weight);
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 8, .no_shuffle = true };
    must(keel_fit(with, strategy[3], all, &o, NULL));
    must(keel_fit(without, strategy[3], first, &o, NULL));
    same_weights(with, without, "steps of weight 0");
    must(keel_fit(with, strategy[3], first, &o, NULL));
    must(keel_fit(without, strategy[3], first, &o, NULL));
    same_weights(with, without, "after steps of weight 0: moments and step counter");
    keel_dataset_destroy(all);
    keel_dataset_destroy(first);
    keel_model_destroy(with);
    keel_model_destroy(without);
}

/* As in Keras, whose loss of such a step has the terms of its layers; evaluate has them, too. */
static void a_step_without_weight_has_the_terms_of_layers_in_its_loss(void **unused)
{
    (void)unused;
    static const char *const terms[] = { "kernel_regularizer", "activity_regularizer" };
    float weight[ROWS];
    for (int i = 0; i < ROWS; i++) weight[i] = i < 16 ? 1 : 0; /* steps 1 and 2, then nothing */
    keel_dataset *d = rows_of(ROWS, weight);
    for (int k = 0; k < 2; k++) {
        keel_model *m;
        keel_logs logs;
        keel_history h = { 0 };
        const keel_fit_options fit = { KEEL_FIT_OPTIONS, .batch_size = 8, .no_shuffle = true };
        const keel_named still = { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0)) };
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 11));
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
        must(keel_model_add(m, "Dense",
                            KEEL_ARGS(KEEL_ARG_INT("units", 1), KEEL_ARG_STR(terms[k], "l2"))));
        must(keel_model_compile(
            m, &(keel_compile){ KEEL_COMPILE, .optimizer = still, .loss = { { "mse" } } }));
        must(keel_evaluate(m, strategy[3], d, &fit, &logs));
        must(keel_fit(m, strategy[3], d, &fit, &h));
        if (!(fabs(h.value[0] - logs.value[0]) < 1e-6 * logs.value[0]))
            fail_msg("%s: loss %.7g, evaluated %.7g", terms[k], h.value[0], logs.value[0]);
        keel_history_free(&h);
        keel_model_destroy(m);
    }
    keel_dataset_destroy(d);
}

static void a_generator_is_refused_before_the_epoch_it_cannot_serve(void **unused)
{
    (void)unused;
    keel_model *m = network("sgd");
    script s = { 0, -1, 3, -1 };
    keel_dataset *d = scripted(&s);
    keel_history h;
    const keel_status status =
        keel_fit(m, strategy[2], d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .epochs = 2 }, &h);
    assert_int_equal(status, KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "script"));
    assert_true(h.epochs <= 1);
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static keel_status stop_in_step_3(void *context, const keel_moment *at)
{
    (void)context;
    return at->step == 3 ? KEEL_END : KEEL_OK;
}

static void the_callback_can_stop_after_a_step(void **unused)
{
    (void)unused;
    keel_model *m = network("sgd");
    keel_dataset *d = rows_of(ROWS, NULL);
    keel_history h;
    must(keel_fit(m, strategy[2], d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8, .epochs = 5,
                                       .callbacks = KEEL_CALLBACKS(&(keel_callback){
                                           KEEL_CALLBACK, .on_train_batch_end = stop_in_step_3 }) },
                  &h));
    assert_true(h.stopped);
    assert_int_equal(h.steps, 3);
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static keel_status stop_in_validation(void *context, const keel_moment *at)
{
    int *validated = context;
    (*validated)++;
    return at->epoch == 1 && at->step == 2 ? KEEL_END : KEEL_OK;
}

static void the_callback_can_stop_inside_a_validation(void **unused)
{
    (void)unused;
    keel_model *m = network("sgd");
    keel_dataset *d = rows_of(ROWS, NULL);
    keel_history h;
    int validated = 0;
    must(keel_fit(
        m, strategy[2], d,
        &(keel_fit_options){
            KEEL_FIT_OPTIONS, .batch_size = 8, .epochs = 5, .validation = d,
            .callbacks = KEEL_CALLBACKS(&(keel_callback){
                KEEL_CALLBACK, .context = &validated, .on_test_batch_end = stop_in_validation }) },
        &h));
    const int64_t steps = (ROWS + 7) / 8;
    assert_true(h.stopped);
    assert_int_equal(h.epochs, 2);
    assert_int_equal(h.steps, 2 * steps);
    assert_int_equal(validated, steps + 2);
    const int n = h.count / 2; /* losses and metrics of training, then the same of validation */
    assert_false(isnan(h.value[n]) || isnan(h.value[h.count]));
    assert_true(isnan(h.value[h.count + n]));
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void each_failing_allocation_of_fit_is_one_error_and_no_leak(void **unused)
{
    (void)unused;
    keel_model *m = network("adam"), *fresh = network("adam");
    keel_dataset *d = rows_of(ROWS, NULL);
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 16, .validation = d };
    keel_history h;
    int failures = 0;
    must(keel_fit(fresh, strategy[3], d, &o, NULL)); /* whatever is made once is made */
    keel_model_destroy(fresh);
    fresh = network("adam");
    keel_logs logs;
    must(keel_evaluate(m, strategy[3], d, NULL, &logs)); /* a model keeps the names of its logs */
    const int64_t live = keel_memory_live();
    for (int64_t at = 0;; at++) {
        keel_memory_fail_at(at);
        const keel_status s = keel_fit(m, strategy[3], d, &o, &h);
        keel_memory_fail_at(-1);
        keel_history_free(&h);
        if (s >= 0) break;
        assert_int_equal(s, KEEL_ENOMEM);
        assert_true(keel_error()[0] != 0);
        if (keel_memory_live() != live) fail_msg("allocation %d of fit leaks", (int)at);
        same_weights(m, fresh, "after a failed allocation");
        failures++;
        assert_true(at < 5000);
    }
    assert_true(failures > 50);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    keel_model_destroy(fresh);
}

static bool same_kernels(keel_model *const m[2])
{
    keel_tensor t[2];
    for (int k = 0; k < 2; k++) must(keel_model_get_weight(m[k], "dense/kernel", &t[k]));
    const bool same = !memcmp(t[0].data, t[1].data, sizeof(float[600][600]));
    for (int k = 0; k < 2; k++) keel_tensor_free(&t[k]);
    return same;
}

/* Whose weights are large enough to leave the model while it runs. */
static void each_failing_allocation_of_predict_leaves_the_weights(void **unused)
{
    enum { UNITS = 600 };
    static float zeros[4][UNITS];
    const keel_tensor rows = { KEEL_FLOAT32, { 2, { 4, UNITS } }, zeros };
    keel_model *m[2];
    keel_dataset *d;
    keel_tensor out = { 0 };
    int failures = 0;
    (void)unused;
    for (int k = 0; k < 2; k++) {
        must(keel_model_create(&m[k], NULL, KEEL_FLOAT32, 3));
        must(keel_model_add(m[k], "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", UNITS))));
        must(keel_model_add(m[k], "Dense", KEEL_ARGS(KEEL_ARG_INT("units", UNITS))));
    }
    must(keel_dataset_from_arrays(&d, &rows, NULL, NULL));
    must(keel_predict(m[0], strategy[3], d, NULL, &out)); /* whatever is made once is made */
    keel_tensor_free(&out);
    assert_true(same_kernels(m));
    const int64_t live = keel_memory_live();
    for (int64_t at = 0;; at++) {
        keel_memory_fail_at(at);
        const keel_status s = keel_predict(m[0], strategy[3], d, NULL, &out);
        keel_memory_fail_at(-1);
        assert_true(same_kernels(m));
        if (s >= 0) break;
        assert_int_equal(s, KEEL_ENOMEM);
        assert_int_equal(keel_memory_live(), live);
        failures++;
        assert_true(at < 5000);
    }
    assert_true(failures > 20);
    keel_tensor_free(&out);
    keel_dataset_destroy(d);
    for (int k = 0; k < 2; k++) keel_model_destroy(m[k]);
}

static void a_model_predicts_rows_that_it_has_mapped_itself(void **unused)
{
    enum { UNITS = 600 };
    static float numbers[40][UNITS];
    const keel_tensor rows = { KEEL_FLOAT32, { 2, { 40, UNITS } }, numbers };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 4 };
    keel_model *m[2];
    keel_dataset *d, *mapped;
    keel_tensor out[2];
    (void)unused;
    for (int i = 0; i < 40 * UNITS; i++) numbers[i / UNITS][i % UNITS] = (float)(i % 101) / 101;
    for (int k = 0; k < 2; k++) {
        must(keel_model_create(&m[k], NULL, KEEL_FLOAT32, 3));
        must(keel_model_add(m[k], "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", UNITS))));
        must(keel_model_add(m[k], "Dense", KEEL_ARGS(KEEL_ARG_INT("units", UNITS))));
    }
    must(keel_dataset_from_arrays(&d, &rows, NULL, NULL));
    must(keel_dataset_map_model(&mapped, d, m[0], false));
    for (int k = 0; k < 2; k++) must(keel_predict(m[k], strategy[1], mapped, &o, &out[k]));
    assert_memory_equal(out[0].data, out[1].data, sizeof numbers);
    keel_dataset_destroy(mapped);
    keel_dataset_destroy(d);
    for (int k = 0; k < 2; k++) {
        keel_tensor_free(&out[k]);
        keel_model_destroy(m[k]);
    }
}

typedef struct epoch_rows {
    int n;
    int64_t rows[8];
} epoch_rows;

static keel_status count_rows(void *context, const keel_moment *at)
{
    epoch_rows *e = context;
    e->rows[e->n++] = at->rows;
    return KEEL_OK;
}

/* Six epochs, in one fit or in two. */
static void fit_six(keel_model *m, const keel_dataset *d, bool in_two, keel_fit_options o,
                    epoch_rows *e)
{
    o.callbacks =
        KEEL_CALLBACKS(&(keel_callback){ KEEL_CALLBACK, .context = e, .on_epoch_end = count_rows });
    if (in_two) {
        o.epochs = 3;
        must(keel_fit(m, strategy[2], d, &o, NULL));
        o.initial_epoch = 3;
    }
    o.epochs = 6;
    must(keel_fit(m, strategy[2], d, &o, NULL));
    assert_int_equal(e->n, 6);
}

static void a_fit_that_goes_on_takes_the_rows_of_one_that_never_ended(void **unused)
{
    (void)unused;
    keel_dataset *d = rows_of(ROWS, NULL);
    for (int end = KEEL_KEEP; end <= KEEL_REFUSE; end++)
        for (int steps = 0; steps <= 2; steps += 2) {
            epoch_rows one = { 0 }, two = { 0 };
            /* three epochs of 50 rows fill ten steps of 15: nothing is carried out of the third */
            const keel_fit_options o = { KEEL_FIT_OPTIONS,
                                         .batch_size = end == KEEL_REFUSE ? 5 : 15,
                                         .end = (keel_end_of_data)end, .steps_per_epoch = steps };
            keel_model *a = network("adam"), *b = network("adam");
            fit_six(a, d, false, o, &one);
            fit_six(b, d, true, o, &two);
            for (int i = 0; i < 6; i++)
                if (one.rows[i] != two.rows[i])
                    fail_msg("end %d, steps %d, epoch %d: %d rows, in one fit %d", end, steps, i,
                             (int)two.rows[i], (int)one.rows[i]);
            same_weights(a, b, "six epochs in two fits");
            keel_model_destroy(a);
            keel_model_destroy(b);
        }
    /* what a fit carries it has trained at its end, so the next one does not take it again */
    epoch_rows e = { 0 };
    int64_t all = 0;
    keel_model *m = network("sgd");
    fit_six(m, d, true, (keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 16, .end = KEEL_CARRY },
            &e);
    for (int i = 0; i < 6; i++) all += e.rows[i];
    assert_int_equal(all, 6 * ROWS);
    assert_int_equal(e.rows[0] + e.rows[1] + e.rows[2], 3 * ROWS);
    keel_model_destroy(m);
    keel_dataset_destroy(d);
}

static void contradictions_are_refused_before_step_1(void **unused)
{
    (void)unused;
    keel_model *m = network("sgd"), *untouched = network("sgd");
    keel_dataset *d = rows_of(ROWS, NULL), *wrong;
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { ROWS, 2 } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 1, { ROWS } }, y };
    must(keel_dataset_from_arrays(&wrong, &tx, &ty, NULL));
    script all = { 0, -1, 3, -1 };
    keel_dataset *stream = scripted(&all), *some;
    must(keel_dataset_take(&some, stream, 2));
    const struct {
        const char *what;
        const keel_dataset *data;
        keel_fit_options o;
        keel_status want;
        const char *says;
    } cases[] = {
        { "rows of another shape", wrong, { KEEL_FIT_OPTIONS }, KEEL_ESHAPE, "(6,)" },
        { "a tail that is refused",
          d,
          { KEEL_FIT_OPTIONS, .batch_size = 16, .end = KEEL_REFUSE },
          KEEL_EDATA,
          "" },
        { "a negative batch size",
          d,
          { KEEL_FIT_OPTIONS, .batch_size = -4 },
          KEEL_EARG,
          "batch_size" },
        { "no epochs left",
          d,
          { KEEL_FIT_OPTIONS, .epochs = 2, .initial_epoch = 2 },
          KEEL_EARG,
          "initial_epoch" },
        { "options without a size", d, { .size = 0 }, KEEL_EARG, "KEEL_FIT_OPTIONS" },
        { "a generator that gives the validation, too",
          stream,
          { KEEL_FIT_OPTIONS, .validation = stream },
          KEEL_EARG,
          "validation data: script" },
        { "one with a stage behind it",
          stream,
          { KEEL_FIT_OPTIONS, .validation = some },
          KEEL_EARG,
          "validation data: script" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_status s = keel_fit(m, strategy[2], cases[i].data, &cases[i].o, NULL);
        if (s != cases[i].want) fail_msg("%s: status %d, %s", cases[i].what, s, keel_error());
        if (!strstr(keel_error(), cases[i].says))
            fail_msg("%s: the error is '%s'", cases[i].what, keel_error());
        same_weights(m, untouched, cases[i].what);
    }
    assert_int_equal(all.at, 0);
    keel_dataset_destroy(some);
    keel_dataset_destroy(stream);
    keel_dataset_destroy(d);
    keel_dataset_destroy(wrong);
    keel_model_destroy(m);
    keel_model_destroy(untouched);
}

static void devices_that_are_not_there_are_refused_by_name(void **unused)
{
    (void)unused;
    const struct {
        const char *text;
        keel_status want;
        const char *says;
    } cases[] = {
        { "cuda:0", KEEL_EDEVICE, "cuda" },   { "gpu", KEEL_EDEVICE, "gpu" },
        { "cpu:", KEEL_EARG, "number" },      { "cpu:3-1", KEEL_EARG, "range" },
        { "cpu:0-999999", KEEL_EARG, "256" }, { "cpu:0+0", KEEL_EARG, "twice" },
        { "cpu:0;1", KEEL_EARG, "commas" },   { "cpu:0-", KEEL_EARG, "missing after" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_strategy *s = NULL;
        const keel_status got = keel_strategy_create(&s, cases[i].text);
        if (got != cases[i].want || !strstr(keel_error(), cases[i].says))
            fail_msg("%s: status %d, '%s'", cases[i].text, got, keel_error());
        assert_null(s);
    }
}

static void the_plan_is_what_fit_does(void **unused)
{
    (void)unused;
    keel_model *m = network("adam");
    keel_plan p;
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0-3"));
    must(keel_plan_make(&p, m, s, 1031, 64, KEEL_KEEP, NULL));
    assert_int_equal(p.steps, 17);
    assert_int_equal(p.last_rows, 7);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(p.full[i], 16);
        assert_int_equal(p.last[i], i < 3 ? 2 : 1);
    }
    assert_true(p.total_bytes > p.weight_bytes + p.moment_bytes);
    assert_true(p.activation_bound <= p.activation_bytes[0]);
    int dense = 0;
    for (int i = 0; i < p.n_kernel; i++) {
        const keel_kernel_row *r = &p.kernel[i];
        if (strcmp(r->op, "dense")) continue;
        assert_true(*r->layer && *r->forward && *r->weights);
        assert_true(dense++ == 0 ? !*r->backward : *r->backward); /* nobody asks for the input's */
    }
    assert_int_equal(dense, 2);
    keel_plan_free(&p);
    assert_int_equal(keel_plan_make(&p, m, s, 1031, 64, KEEL_REFUSE, NULL), KEEL_EDATA);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
}

static void a_profile_names_every_layer_and_a_trace_is_json(void **unused)
{
    (void)unused;
    char path[4096];
    const char *tmp = getenv("KEEL_TEST_TMP");
    snprintf(path, sizeof path, "%s/trace.json", tmp ? tmp : "/tmp");
    keel_model *m = network("adam");
    keel_dataset *d = rows_of(ROWS, NULL);
    keel_history h;
    must(keel_fit(
        m, strategy[3], d,
        &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8, .profile = true, .trace = path },
        &h));
    const keel_profile *p = h.profile;
    assert_non_null(p);
    assert_int_equal(p->steps, 7);
    double busy = 0, rows = 0, flops = 0;
    int seen = 0;
    for (int i = 0; i < p->count; i++) { /* what ran has a kernel, and else there is none */
        const keel_profile_row *r = &p->row[i];
        assert_true((r->forward_seconds > 0) <= (*r->forward_kernel != 0));
        if (!strcmp(r->op, "dense")) assert_true(*r->weights_kernel != 0);
        if (!strcmp(r->op, "dropout")) assert_true(*r->weights_kernel == 0);
        if (!strcmp(r->op, "batch_norm"))
            assert_string_equal(r->weights_kernel, "from merged sums");
        if (!strcmp(r->op, "loss")) assert_true(*r->backward_kernel != 0);
    }
    for (int w = 0; w < p->workers; w++) busy += p->call_seconds[w];
    for (int i = 0; i < p->count; i++) {
        rows += p->row[i].forward_seconds + p->row[i].backward_seconds;
        flops += p->row[i].forward_flops + p->row[i].backward_flops;
        seen +=
            !strcmp(p->row[i].layer, "dense") || !strcmp(p->row[i].layer, "batch_normalization");
    }
    assert_true(seen >= 2);
    assert_true(busy > 0 && fabs(busy - rows) < 1e-6);
    assert_true(busy <= p->step_seconds * p->workers * 1.01);
    /* 2 flops a multiply-add; forward, and weights of both layers, and backward of the second */
    assert_true(fabs(flops - 2.0 * ROWS * (2 * FEATURES * 5 + 3 * 5 * CLASSES)) < 1);
    json_t *trace = json_load_file(path, 0, NULL);
    assert_non_null(trace);
    const json_t *events = json_object_get(trace, "traceEvents");
    assert_true(json_array_size(events) > 7 * 10);
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *e = json_array_get(events, i);
        assert_true(json_is_string(json_object_get(e, "ph")));
        if (json_object_get(e, "dur"))
            assert_true(json_number_value(json_object_get(e, "dur")) >= 0);
        const json_t *args = json_object_get(e, "args");
        if (json_object_get(args, "pass"))
            assert_true(json_string_length(json_object_get(args, "kernel")) > 0);
    }
    json_decref(trace);
    remove(path);
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void a_layer_without_a_fast_kernel_is_named(void **unused)
{
    (void)unused;
    keel_model *m;
    keel_history h;
    keel_dataset *d = rows_of(ROWS, NULL);
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 300))));
    must(keel_model_add(m, "ops.Cbrt", KEEL_ARGS(KEEL_ARG_STR("name", "odd"))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", CLASSES))));
    must(keel_model_compile(m,
                            &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" },
                                             .loss = { { "sparse_categorical_crossentropy" } } }));
    must(keel_fit(m, strategy[2], d, NULL, &h));
    assert_non_null(h.note);
    assert_non_null(strstr(h.note, "no fast kernel runs all passes of 'odd' (cbrt): "));
    keel_history_free(&h);
    keel_model_destroy(m);
    m = network("sgd");
    must(keel_fit(m, strategy[2], d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .reference_kernels = true }, &h));
    assert_null(h.note); /* as asked */
    keel_history_free(&h);
    keel_model_destroy(m);
    keel_dataset_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predict_gives_n_rows_in_order_and_evaluate_counts_each_once),
        cmocka_unit_test(predict_of_a_stream_that_does_not_say_its_rows_gives_all_of_them),
        cmocka_unit_test(the_regulariser_of_a_frozen_layer_is_no_part_of_the_loss),
        cmocka_unit_test(batch_normalization_of_masked_values_is_that_of_the_places_that_count),
        cmocka_unit_test(batch_normalization_of_masked_rows_without_places_is_that_of_one_place),
        cmocka_unit_test(what_batch_normalization_cannot_do_with_a_mask_is_refused_by_name),
        cmocka_unit_test(a_weight_that_no_loss_reaches_stays_and_is_named),
        cmocka_unit_test(the_same_lanes_give_the_same_bits),
        cmocka_unit_test(a_failed_step_leaves_the_weights_as_before_it),
        cmocka_unit_test(a_step_without_weight_moves_nothing),
        cmocka_unit_test(a_step_without_weight_has_the_terms_of_layers_in_its_loss),
        cmocka_unit_test(a_generator_is_refused_before_the_epoch_it_cannot_serve),
        cmocka_unit_test(the_callback_can_stop_after_a_step),
        cmocka_unit_test(the_callback_can_stop_inside_a_validation),
        cmocka_unit_test(each_failing_allocation_of_fit_is_one_error_and_no_leak),
        cmocka_unit_test(each_failing_allocation_of_predict_leaves_the_weights),
        cmocka_unit_test(a_model_predicts_rows_that_it_has_mapped_itself),
        cmocka_unit_test(a_fit_that_goes_on_takes_the_rows_of_one_that_never_ended),
        cmocka_unit_test(contradictions_are_refused_before_step_1),
        cmocka_unit_test(devices_that_are_not_there_are_refused_by_name),
        cmocka_unit_test(the_plan_is_what_fit_does),
        cmocka_unit_test(a_layer_without_a_fast_kernel_is_named),
        cmocka_unit_test(a_profile_names_every_layer_and_a_trace_is_json),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
