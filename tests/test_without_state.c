/* Models that are loaded without the state of their optimizer, which stays in the file: they are
 * what they are with it, but for training. */
#include "base/memory.h"
#include "golden.h"
#include "model/parts.h"
#include "must.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const files[] = {
    "train_mlp_adam.keras",     "functional_adamw.keras",   "optimizer_adafactor.keras",
    "optimizer_nadam.keras",    "optimizer_averages.keras", "optimizer_muon.keras",
    "optimizer_schedule.keras", "loss_scale_multi.keras",   "loss_scale_nadam.keras",
    "multi_begun.keras",        "weights_state_adam.keras", "legacy_numbers_rms.h5",
    "compiled_frozen.keras",    "optimizer_ftrl.keras",     "sequential_plain.keras",
};

static bool has_memory(const keel_model *m)
{
    for (int i = 0; i < m->compiled.n_state; i++)
        if (m->compiled.state[i].data) return true;
    return false;
}

static void have_equal_weights(const keel_model *a, const keel_model *b)
{
    assert_int_equal(a->n_weight, b->n_weight);
    for (int i = 0; i < a->n_weight; i++)
        assert_memory_equal(a->weight[i].data, b->weight[i].data,
                            (size_t)keel_shape_count(&a->weight[i].info.spec.shape) *
                                keel_dtype_size(a->dtype));
}

static void it_is_the_model_that_it_is_with_its_state(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        keel_model *whole, *m;
        char *texts[2];
        double rates[2] = { 0 };
        must(keel_model_load(&whole, golden_path("%s", files[i])));
        must(keel_model_load_without_state(&m, golden_path("%s", files[i])));
        have_equal_weights(whole, m);
        must(keel_model_summary(whole, &texts[0]));
        must(keel_model_summary(m, &texts[1]));
        assert_string_equal(texts[0], texts[1]);
        keel_model_learning_rate(whole, &rates[0]);
        keel_model_learning_rate(m, &rates[1]);
        assert_true(rates[0] == rates[1]);
        assert_int_equal(keel_model_steps_done(whole), keel_model_steps_done(m));
        assert_int_equal(keel_model_state_bytes(whole), keel_model_state_bytes(m));
        assert_int_equal(keel_model_state_left_out(whole), keel_model_state_left_out(m));
        assert_false(has_memory(m));
        assert_true(keel_model_has_state(m) == (whole->compiled.n_state == 0));
        keel_model_summary_free(texts[0]);
        keel_model_summary_free(texts[1]);
        keel_model_destroy(whole);
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

typedef struct job {
    keel_strategy *strategy;
    keel_dataset *data;
    float x[20][3], y[20][2];
} job;

static void begin(job *j)
{
    const keel_tensor x = { KEEL_FLOAT32, KEEL_SHAPE(20, 3), j->x },
                      y = { KEEL_FLOAT32, KEEL_SHAPE(20, 2), j->y };
    for (int i = 0; i < 60; i++) j->x[i / 3][i % 3] = (float)((i * 37 + 11) % 101 - 50) / 32;
    for (int i = 0; i < 40; i++) j->y[i / 2][i % 2] = 1;
    must(keel_strategy_create(&j->strategy, "cpu:0"));
    must(keel_dataset_from_arrays(&j->data, &x, &y, NULL));
}

static void end(job *j)
{
    keel_dataset_destroy(j->data);
    keel_strategy_destroy(j->strategy);
    assert_int_equal(keel_memory_live(), 0);
}

static void it_predicts_and_is_evaluated_and_planned_as_with_it(void **unused)
{
    job j;
    keel_model *m[2];
    keel_tensor out[2];
    keel_logs logs[2];
    keel_plan plans[2];
    (void)unused;
    begin(&j);
    must(keel_model_load(&m[0], golden_path("weights_state_adam.keras")));
    must(keel_model_load_without_state(&m[1], golden_path("weights_state_adam.keras")));
    must(keel_model_recompile(
        m[1],
        &(keel_compile){ KEEL_COMPILE, .metrics = { { "mae" } } })); /* changes no optimizer */
    must(keel_model_recompile(m[0], &(keel_compile){ KEEL_COMPILE, .metrics = { { "mae" } } }));
    for (int k = 0; k < 2; k++) {
        must(keel_predict(m[k], j.strategy, j.data, NULL, &out[k]));
        must(keel_evaluate(m[k], j.strategy, j.data, NULL, &logs[k]));
        must(keel_plan_make(&plans[k], m[k], j.strategy, 20, 5, KEEL_KEEP, NULL));
    }
    assert_memory_equal(out[0].data, out[1].data, (size_t)keel_shape_count(&out[0].shape) * 4);
    assert_true(logs[0].count == 2 && logs[1].count == 2);
    for (int i = 0; i < 2; i++) assert_true(logs[0].value[i] == logs[1].value[i]);
    assert_int_equal(plans[0].model_bytes, plans[1].model_bytes);
    assert_int_equal(plans[0].total_bytes, plans[1].total_bytes);
    assert_false(has_memory(m[1]));
    for (int k = 0; k < 2; k++) {
        keel_tensor_free(&out[k]);
        keel_plan_free(&plans[k]);
        keel_model_destroy(m[k]);
    }
    end(&j);
}

static void only_a_new_optimizer_trains_it(void **unused)
{
    static const char says[] = "was loaded without the state of its optimizer";
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 5 };
    job j;
    keel_model *m;
    (void)unused;
    begin(&j);
    must(keel_model_load_without_state(&m, golden_path("weights_state_adam.keras")));
    assert_int_equal(keel_fit(m, j.strategy, j.data, &o, NULL), KEEL_EARG);
    assert_non_null(strstr(keel_error(), says));
    must(keel_model_recompile(m, &(keel_compile){ KEEL_COMPILE, .loss = { { "mae" } } }));
    assert_int_equal(keel_fit(m, j.strategy, j.data, &o, NULL), KEEL_EARG);
    assert_non_null(strstr(keel_error(), says));
    must(keel_model_recompile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" } }));
    assert_int_equal(keel_model_steps_done(m), 0);
    must(keel_fit(m, j.strategy, j.data, &o, NULL));
    assert_int_equal(keel_model_steps_done(m), 4);
    assert_true(keel_model_has_state(m));
    keel_model_destroy(m);
    must(keel_model_load_without_state(&m, golden_path("weights_state_adam.keras")));
    must(keel_model_set_trainable(m, NULL, false)); /* drops the state, as with it */
    must(keel_model_set_trainable(m, NULL, true));
    must(keel_fit(m, j.strategy, j.data, &o, NULL));
    keel_model_destroy(m);
    end(&j);
}

/* As keel_model_load_weights does with it, but for its memory. */
static void other_weights_are_loaded_without_their_state(void **unused)
{
    keel_model *m;
    (void)unused;
    must(keel_model_load_without_state(&m, golden_path("weights_state_adam.keras")));
    must(keel_model_load_weights(m, golden_path("weights_state.weights.h5")));
    assert_int_equal(keel_model_state_loaded(m), KEEL_STATE_TAKEN);
    assert_int_equal(keel_model_steps_done(m), 4);
    assert_false(has_memory(m) || keel_model_has_state(m));
    must(keel_model_set_dtype(m, KEEL_FLOAT64));
    must(keel_model_load_weights(m, golden_path("weights_state.weights.h5")));
    assert_false(has_memory(m) || keel_model_has_state(m));
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

static void its_files_are_without_the_state(void **unused)
{
    keel_model *m, *back;
    (void)unused;
    must(keel_model_load_without_state(&m, golden_path("weights_state_adam.keras")));
    must(keel_model_save(m, "without.keras"));
    must(keel_model_load(&back, "without.keras"));
    have_equal_weights(m, back);
    assert_true(keel_model_is_compiled(back) && keel_model_has_state(back));
    assert_int_equal(keel_model_steps_done(back), 0);
    keel_model_destroy(back);
    keel_model_destroy(m);
    unlink("without.keras");
    assert_int_equal(keel_memory_live(), 0);
}

/* Of a state that is lost with a process. */
static void a_lost_state_does_not_come_back_by_a_file_of_another_optimizer(void **unused)
{
    keel_model *m;
    (void)unused;
    must(keel_model_load(&m, golden_path("weights_state_adam.keras")));
    m->compiled.iterations = 3;
    keel_compiled_state_leave(&m->compiled);
    must(keel_model_load_weights(m, golden_path("weights_state_sgd.keras")));
    assert_int_equal(keel_model_state_loaded(m), KEEL_STATE_OTHER);
    assert_false(has_memory(m) || keel_model_has_state(m));
    must(keel_model_load_weights(m, golden_path("weights_state.weights.h5")));
    assert_int_equal(keel_model_state_loaded(m), KEEL_STATE_TAKEN);
    assert_true(has_memory(m) && keel_model_has_state(m));
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

/* In Keras 3.15 and in keel_model_load that is an error, and the advice is to load without it. */
static void a_state_in_the_order_of_an_older_keras_does_not_matter(void **unused)
{
    static const char *const old[] = { "old_state_nadam.keras", "old_state_ema.keras" };
    (void)unused;
    for (int i = 0; i < 2; i++) {
        keel_model *m;
        assert_int_equal(keel_model_load(&m, golden_path("%s", old[i])), KEEL_EUNSUP);
        must(keel_model_load_without_state(&m, golden_path("%s", old[i])));
        assert_true(keel_model_is_compiled(m));
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void averages_of_a_state_that_is_not_there_are_not_swapped_in(void **unused)
{
    job j;
    keel_model *m;
    keel_callback *c = NULL;
    keel_logs logs;
    (void)unused;
    begin(&j);
    must(keel_model_load(&m, golden_path("weights_state_adam.keras")));
    must(keel_model_recompile(
        m, &(keel_compile){ KEEL_COMPILE,
                            .optimizer = { "adam", KEEL_ARGS(KEEL_ARG_BOOL("use_ema", true)) } }));
    must(keel_fit(m, j.strategy, j.data, NULL, NULL));
    must(keel_model_save(m, "averages.keras"));
    keel_model_destroy(m);
    must(keel_model_load_without_state(&m, "averages.keras"));
    must(keel_callback_parse(&c, "SwapEMAWeights()"));
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .callbacks = KEEL_CALLBACKS(c) };
    assert_true(keel_evaluate(m, j.strategy, j.data, &o, &logs) < 0);
    if (!strstr(keel_error(), "the averages are in the optimizer's state"))
        fail_msg("%s", keel_error());
    keel_callback_destroy(c);
    keel_model_destroy(m);
    unlink("averages.keras");
    end(&j);
}

static void each_allocation_may_fail(void **unused)
{
    keel_status s = KEEL_ENOMEM;
    (void)unused;
    for (int i = 0; s < 0 && i < 10000; i++) {
        keel_model *m = NULL;
        keel_memory_fail_at(i);
        s = keel_model_load_without_state(&m, golden_path("multi_begun.keras"));
        keel_memory_fail_at(-1);
        assert_true(s == KEEL_OK || s == KEEL_ENOMEM);
        keel_model_destroy(m);
        assert_int_equal(keel_memory_live(), 0);
    }
    assert_int_equal(s, KEEL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_model_that_it_is_with_its_state),
        cmocka_unit_test(it_predicts_and_is_evaluated_and_planned_as_with_it),
        cmocka_unit_test(only_a_new_optimizer_trains_it),
        cmocka_unit_test(other_weights_are_loaded_without_their_state),
        cmocka_unit_test(its_files_are_without_the_state),
        cmocka_unit_test(a_lost_state_does_not_come_back_by_a_file_of_another_optimizer),
        cmocka_unit_test(a_state_in_the_order_of_an_older_keras_does_not_matter),
        cmocka_unit_test(averages_of_a_state_that_is_not_there_are_not_swapped_in),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
