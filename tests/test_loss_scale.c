/* LossScaleOptimizer and the policy mixed_float16: scale, skipped steps and losses as in the real
 * Keras, the same on every number of devices, in files that go on. The numbers are
 * golden/loss_scale.json, by golden/make_loss_scale.py. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "golden.h"
#include "keel/keel.h"
#include "model/model.h"
#include "must.h"
#include "tensor/float16.h"
#include "train/loss_scale.h"
#include "training_rows.h"

static const struct work {
    const char *name;
    int is_image;
    const char *policy;
} works[] = {
    { "grows", 0, "float32" },
    { "overflows", 0, "float32" },
    { "half", 0, "mixed_float16" },
    { "half_cnn", 1, "mixed_float16" },
    { "half_by_policy", 0, "mixed_float16" }, /* trained before: it has a state */
    { "half_functional", 0, "mixed_float16" },
    { "nadam", 0, "float32" }, /* trained before, and the next */
    { "adafactor", 0, "float32" },
    { "multi", 0, "float32" }, /* a MultiOptimizer inside */
    { "penalized", 0, "float32" },
};
enum { WORKS = sizeof works / sizeof *works, EPOCHS = 2 };

static rows data[2];

static keel_model *load(const struct work *w)
{
    char path[64];
    keel_model *m;
    snprintf(path, sizeof path, "golden/loss_scale_%s.keras", w->name);
    must(keel_model_load(&m, path));
    assert_string_equal(keel_model_dtype_policy(m), w->policy);
    return m;
}

static keel_status try_fit(keel_model *m, rows *r, int is_image, const char *devices, int64_t batch,
                           keel_history *h)
{
    const keel_shape shape =
        is_image ? (keel_shape){ 4, { ROWS, 12, 12, 3 } } : (keel_shape){ 2, { ROWS, 20 } };
    const keel_tensor x = { KEEL_FLOAT32, shape, r->x },
                      y = { KEEL_FLOAT32, { 1, { ROWS } }, r->y };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = batch, .no_shuffle = true };
    keel_dataset *d;
    keel_strategy *s;
    must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    must(keel_strategy_create(&s, devices));
    const keel_status status = keel_fit(m, s, d, &o, h);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    return status;
}

static double fit(keel_model *m, const struct work *w, const char *devices, int64_t batch)
{
    keel_history h = { 0 };
    must(try_fit(m, &data[w->is_image], w->is_image, devices, batch, &h));
    const double loss = h.value[0];
    keel_history_free(&h);
    return loss;
}

static void scale_and_losses_are_those_of_keras(void **state)
{
    (void)state;
    json_t *all = golden_load("loss_scale.json");
    for (const struct work *w = works; w < works + WORKS; w++) {
        const json_t *of = json_object_get(all, w->name), *plain = json_object_get(of, "plain");
        const json_t *epochs = json_object_get(of, "epochs");
        keel_model *m = load(w);
        double allowed = 2e-6;
        assert_int_equal(json_array_size(epochs), EPOCHS);
        /* float16 rounds at other places: twice what the policy changes, as in test_mixed.c */
        for (size_t e = 0; plain && e < EPOCHS; e++) {
            const double keras = golden_number(json_array_get(epochs, e), "loss");
            const double other = json_real_value(json_array_get(plain, e));
            allowed = fmax(allowed, 2 * fabs(keras - other) / keras);
        }
        for (size_t e = 0; e < EPOCHS; e++) {
            const json_t *want = json_array_get(epochs, e);
            const double keras = golden_number(want, "loss");
            const double loss = fit(m, w, "cpu:0-1", (int64_t)golden_number(of, "batch"));
            const keel_model_compiled *c = &m->compiled;
            if (!(fabs(loss - keras) <= allowed * keras))
                fail_msg("%s, epoch %zu: loss %.7g, Keras %.7g", w->name, e, loss, keras);
            if (c->loss_scale != (float)golden_number(want, "scale") ||
                c->good_steps != (int64_t)golden_number(want, "good") ||
                c->iterations != (int64_t)golden_number(want, "steps"))
                fail_msg("%s, epoch %zu: scale %g after %lld good steps of %lld", w->name, e,
                         (double)c->loss_scale, (long long)c->good_steps, (long long)c->iterations);
        }
        keel_model_destroy(m);
    }
    json_decref(all);
}

static bool same_weights(const keel_model *a, const keel_model *b)
{
    bool same = a->n_weight == b->n_weight;
    for (int i = 0; same && i < a->n_weight; i++)
        same = !memcmp(a->weight[i].data, b->weight[i].data,
                       (size_t)keel_shape_count(&a->weight[i].info.spec.shape) * sizeof(float));
    return same;
}

static void lanes_decide_as_one(void **state)
{
    (void)state;
    static const char *const devices[] = { "cpu:0-1", "cpu:0-2", "cpu:0-3", "cpu:0-4", "cpu:0-7" };
    for (const struct work *w = works; w < works + WORKS; w++) {
        keel_model *one = load(w);
        fit(one, w, "cpu:0", 7);
        for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
            keel_model *many = load(w);
            fit(many, w, devices[i], 7);
            const keel_model_compiled *a = &one->compiled, *b = &many->compiled;
            if (a->loss_scale != b->loss_scale || a->iterations != b->iterations ||
                a->good_steps != b->good_steps)
                fail_msg("%s on %s: scale %g after %lld steps, not %g after %lld", w->name,
                         devices[i], (double)b->loss_scale, (long long)b->iterations,
                         (double)a->loss_scale, (long long)a->iterations);
            /* to the bit up to two workers; with more, gradients are cut elsewhere */
            if (sysconf(_SC_NPROCESSORS_ONLN) <= 2 && !same_weights(one, many))
                fail_msg("%s on %s: other weights", w->name, devices[i]);
            keel_model_destroy(many);
        }
        keel_model_destroy(one);
    }
}

/* Saving in the middle changes nothing: the file has the scale and the optimizer's state. */
static void a_saved_training_goes_on(void **state)
{
    (void)state;
    for (const struct work *w = works; w < works + WORKS; w++) {
        char path[] = "/tmp/keel_test_XXXXXX.keras";
        const int file = mkstemps(path, 6);
        keel_model *through = load(w), *saved = load(w), *again;
        assert_true(file >= 0);
        close(file);
        fit(through, w, "cpu:0", 5);
        fit(saved, w, "cpu:0", 5);
        must(keel_model_save(saved, path));
        must(keel_model_load(&again, path));
        unlink(path);
        assert_true(keel_model_scales_loss(again));
        fit(through, w, "cpu:0", 5);
        fit(again, w, "cpu:0", 5);
        assert_true(through->compiled.loss_scale == again->compiled.loss_scale);
        assert_int_equal(through->compiled.good_steps, again->compiled.good_steps);
        assert_int_equal(through->compiled.iterations, again->compiled.iterations);
        if (!same_weights(through, again)) fail_msg("%s: other weights", w->name);
        keel_model_destroy(through);
        keel_model_destroy(saved);
        keel_model_destroy(again);
    }
}

static void a_skipped_step_changes_no_weight_and_is_told(void **state)
{
    (void)state;
    const struct work *w = &works[2];
    rows few = data[0];
    keel_history h = { 0 };
    keel_model *m = load(w), *before = load(w);
    /* infinity in every step: skipped, until there are too many in a row */
    for (int i = 0; i < ROWS; i++) few.x[i * 20] = INFINITY;
    must(try_fit(m, &few, 0, "cpu:0-1", 35, &h));
    assert_non_null(strstr(h.note, "2 of 2 steps skipped"));
    assert_true(m->compiled.loss_scale == 0x1p18F);
    assert_int_equal(m->compiled.iterations, 0);
    assert_true(same_weights(m, before));
    keel_history_free(&h);
    assert_int_equal(try_fit(m, &few, 0, "cpu:0-1", 1, &h), KEEL_ENUMERIC);
    assert_non_null(strstr(keel_error(), "more than 50 steps in a row"));
    assert_true(same_weights(m, before));
    keel_history_free(&h);
    keel_model_destroy(m);
    keel_model_destroy(before);
}

/* The first gradient in backward order is that of the last layer. */
static void too_many_skips_name_the_layer(void **state)
{
    (void)state;
    keel_model *m = load(&works[0]);
    keel_history h = { 0 };
    keel_model_set_learning_rate(m, 0);
    m->compiled.loss_scale = INFINITY; /* no file has it; halving leaves it as it is */
    assert_int_equal(try_fit(m, &data[0], 0, "cpu:0-1", 1, &h), KEEL_ENUMERIC);
    assert_non_null(strstr(keel_error(), "the gradient of 'out/"));
    keel_history_free(&h);
    keel_model_destroy(m);
}

static void a_scale_stays_in_the_range_of_floats(void **state)
{
    (void)state;
    keel_loss_scale s = { .on = true, .now = 0x1p126F, .growth = 1 };
    for (int i = 0; i < 3; i++) keel_loss_scale_good(&s);
    assert_true(s.now == 0x1p127F && s.good == 0);
    for (int i = 0; i < 300; i++) keel_loss_scale_skip(&s);
    assert_true(s.now == FLT_MIN);
    assert_int_equal(s.in_a_row, 300);
    keel_loss_scale_good(&s);
    assert_true(s.now == 2 * FLT_MIN);
    assert_int_equal(s.in_a_row, 0); /* too many in a row fail, many in all do not */
    assert_int_equal(s.skipped, 300);
}

/* Keras writes such files, and no step is good any more once it has read them. */
static void a_file_whose_scale_left_the_range_goes_on(void **state)
{
    static const struct {
        float written, read; /* 0: the file is refused */
    } cases[] = { { INFINITY, 0x1p127F }, { 0, FLT_MIN }, { -INFINITY, 0 }, { NAN, 0 }, { -2, 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[] = "/tmp/keel_test_XXXXXX.keras";
        const int file = mkstemps(path, 6);
        keel_model *m = load(&works[0]), *again;
        assert_true(file >= 0);
        close(file);
        fit(m, &works[0], "cpu:0", 35); /* files have a scale from the first step on */
        m->compiled.loss_scale = cases[i].written;
        must(keel_model_save(m, path));
        keel_model_destroy(m);
        const keel_status s = keel_model_load(&again, path);
        unlink(path);
        assert_int_equal(s, cases[i].read > 0 ? KEEL_OK : KEEL_EFORMAT);
        if (s < 0) continue;
        assert_true(again->compiled.loss_scale == cases[i].read);
        if (i == 0) fit(again, &works[0], "cpu:0", 7);
        if (i == 0) assert_true(again->compiled.loss_scale <= 0x1p127F);
        keel_model_destroy(again);
    }
}

static void the_policy_wraps_the_optimizer(void **state)
{
    (void)state;
    keel_model *m;
    must(keel_model_load(&m, "golden/train_cnn_sgd.keras"));
    assert_false(keel_model_scales_loss(m));
    must(keel_model_set_dtype_policy(m, "mixed_float16"));
    assert_true(keel_model_scales_loss(m));
    assert_true(m->compiled.loss_scale == 0x1p15F);
    must(keel_model_set_dtype_policy(m, "mixed_bfloat16"));
    assert_false(keel_model_scales_loss(m));
    const keel_named wrapped = {
        "LossScaleOptimizer",
        KEEL_ARGS(KEEL_ARG_JSON("inner_optimizer",
                                "{\"class_name\":\"SGD\",\"config\":{\"momentum\":0.5}}"),
                  KEEL_ARG_FLOAT("initial_scale", 16))
    };
    const keel_compile c = { KEEL_COMPILE, .optimizer = wrapped, .loss = { { "mse" } } };
    must(keel_model_compile(m, &c));
    assert_true(keel_model_scales_loss(m));
    assert_true(m->compiled.loss_scale == 16);
    const keel_compile without = { KEEL_COMPILE, .optimizer = { "LossScaleOptimizer" },
                                   .loss = { { "mse" } } };
    assert_int_equal(keel_model_compile(m, &without), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "inner_optimizer"));
    keel_model_destroy(m);
}

/* All steps of the first epoch may overflow; the averages of weights begin with the first that does
 * not. */
static void averages_wait_for_a_step_that_is_not_skipped(void **state)
{
    (void)state;
    static const char *const texts[] = { "SwapEMAWeights()", "SwapEMAWeights(swap_on_epoch=True)" };
    const keel_tensor x = { KEEL_FLOAT32, { 2, { 2, 20 } }, data[0].x },
                      y = { KEEL_FLOAT32, { 2, { 2, 1 } }, data[0].y };
    const keel_named wrapped = {
        "LossScaleOptimizer",
        KEEL_ARGS(KEEL_ARG_JSON("inner_optimizer",
                                "{\"class_name\":\"SGD\",\"config\":{\"use_ema\":true}}"),
                  KEEL_ARG_FLOAT("initial_scale", 0x1p127))
    };
    for (int i = 0; i < 2; i++) {
        keel_model *m;
        keel_dataset *d;
        keel_strategy *s;
        keel_callback *swap;
        keel_tensor before, after;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 20))));
        must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
        must(keel_model_compile(
            m, &(keel_compile){ KEEL_COMPILE, .optimizer = wrapped, .loss = { { "mse" } } }));
        must(keel_dataset_from_arrays(&d, &x, &y, NULL));
        must(keel_strategy_create(&s, "cpu:0"));
        must(keel_callback_parse(&swap, texts[i]));
        must(keel_model_get_weight(m, "dense/kernel", &before));
        must(keel_fit(m, s, d,
                      &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 2, .validation = d,
                                           .callbacks = KEEL_CALLBACKS(swap) },
                      NULL));
        must(keel_model_get_weight(m, "dense/kernel", &after));
        assert_int_equal(m->compiled.iterations, 0);
        assert_memory_equal(before.data, after.data, 20 * sizeof(float));
        keel_tensor_free(&before);
        keel_tensor_free(&after);
        keel_callback_destroy(swap);
        keel_strategy_destroy(s);
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
}

/* Every float16 comes back from float32; numbers between two of them go to the nearer one, and in
 * the middle to the even one; by the instructions of the processor and without. */
static void float16_is_rounded_as_ieee_says(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 0x7c00; i++) {
        const float x = keel_f16_wide((keel_f16)i),
                    next = i == 0x7bff ? 65536.F : keel_f16_wide((keel_f16)(i + 1));
        const float middle = x + (next - x) / 2;
        const float in[8] = {
            x,        -x, nextafterf(middle, 0), middle, nextafterf(middle, INFINITY), -middle,
            INFINITY, NAN
        };
        const keel_f16 even = (keel_f16)(i + (i & 1));
        const keel_f16 want[8] = {
            (keel_f16)i,       (keel_f16)(i | 0x8000),    (keel_f16)i, even,
            (keel_f16)(i + 1), (keel_f16)(even | 0x8000), 0x7c00,      0x7e00
        };
        keel_f16 out[8];
        float back[8];
        keel_f16_narrow(out, in, 8);
        keel_f16_widen(back, out, 8);
        for (int k = 0; k < 8; k++) {
            const float wide = keel_f16_wide(out[k]);
            if (out[k] != want[k] || keel_f16_round(in[k]) != want[k])
                fail_msg("%a: %x, %x, not %x", (double)in[k], out[k], keel_f16_round(in[k]),
                         want[k]);
            assert_memory_equal(&wide, &back[k], sizeof wide);
        }
    }
    assert_true(keel_f16_wide(1) == 0x1p-24F && keel_f16_wide(0x7bff) == 65504);
}

static int make_data(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) make_rows(&data[i], i, ROWS, 7);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float16_is_rounded_as_ieee_says),
        cmocka_unit_test(scale_and_losses_are_those_of_keras),
        cmocka_unit_test(lanes_decide_as_one),
        cmocka_unit_test(a_saved_training_goes_on),
        cmocka_unit_test(a_skipped_step_changes_no_weight_and_is_told),
        cmocka_unit_test(too_many_skips_name_the_layer),
        cmocka_unit_test(a_scale_stays_in_the_range_of_floats),
        cmocka_unit_test(a_file_whose_scale_left_the_range_goes_on),
        cmocka_unit_test(the_policy_wraps_the_optimizer),
        cmocka_unit_test(averages_wait_for_a_step_that_is_not_skipped),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
