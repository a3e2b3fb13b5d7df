/* Training loops of one's own (keel/function.h) against Keras with a train_step, on any number of
 * devices, and against fit. The numbers are golden/loops.json, made by golden/make_loops.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "golden.h"
#include "loops.h"

static void is_near(const char *where, int64_t at, double got, const json_t *want, double most)
{
    if (!golden_near(got, json_number_value(want), most))
        fail_msg("%s, %d: %.15g instead of %.15g", where, (int)at, got, json_number_value(want));
}

/* The losses of a step as the golden has them: a GAN's discriminator sees both halves at once. */
static void check_losses(const struct loop_case *c, keel_function *const *f, const json_t *want,
                         double most)
{
    double got[LOSSES] = { 0 };
    int n = 0;
    for (int k = 0; k < FUNCTIONS && f[k]; k++)
        for (int i = 0; i < LOSSES && c->how.loss[k][i]; i++)
            must(keel_function_scalar(f[k], c->how.loss[k][i], &got[n < LOSSES ? n++ : 0]));
    if (c->how.step[1]) {
        double half[2];
        must(keel_function_scalar(f[0], "fake", &half[0]));
        must(keel_function_scalar(f[0], "real", &half[1]));
        got[0] = (half[0] + half[1]) / 2;
        must(keel_function_scalar(f[1], "g", &got[1]));
    }
    for (size_t i = 0; i < json_array_size(want); i++)
        is_near(c->golden, (int64_t)i, got[i], json_array_get(want, i), most);
}

static void train(const struct loop_case *c, const char *devices, keel_dtype dtype, double most,
                  const json_t *golden)
{
    loop l = c->how;
    keel_strategy *s;
    keel_function *f[FUNCTIONS + 1] = { NULL };
    l.dtype = dtype;
    c->create(&l);
    must(keel_strategy_create(&s, devices));
    for (int k = 0; k < FUNCTIONS && l.step[k]; k++) f[k] = loop_function(&l, k);
    for (int64_t step = 0; step < STEPS; step++) {
        const int64_t first = step * BATCH, n = ROWS - first < BATCH ? ROWS - first : BATCH;
        keel_tensor in[INPUTS];
        for (int i = 0; i < l.n_input; i++) in[i] = loop_part(&l.rows[i], first, n);
        for (int k = 0; f[k]; k++) must(keel_strategy_run(s, f[k], in, l.n_input));
        check_losses(c, f, json_array_get(json_object_get(golden, "losses"), (size_t)step), most);
    }
    for (int m = 0, at = 0; m < l.n_golden; m++)
        for (int w = 0; w < keel_model_weight_count(l.model[m]); w++, at++) {
            keel_tensor t;
            const json_t *want = json_array_get(json_object_get(golden, "weights"), (size_t)at);
            must(keel_model_get_weight(l.model[m], keel_model_weight_name(l.model[m], w), &t));
            for (size_t i = 0; i < json_array_size(want); i++)
                is_near(keel_model_weight_name(l.model[m], w), (int64_t)i,
                        loop_number(&t, (int64_t)i), json_array_get(want, i), most);
            keel_tensor_free(&t);
        }
    for (int k = 0; f[k]; k++) {
        assert_int_equal(keel_function_compiled(f[k]), 1);
        keel_function_destroy(f[k]);
    }
    keel_strategy_destroy(s);
    loop_free(&l);
}

static void loops_learn_what_keras_learns_with_a_train_step(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };
    json_t *all = golden_load("loops.json");
    const int64_t live = keel_memory_live();
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
            const json_t *golden = json_object_get(all, loops[i].golden);
            train(&loops[i], devices[d], KEEL_FLOAT64, 1e-9, golden);
            train(&loops[i], devices[d], KEEL_FLOAT32, 1e-4, golden);
            assert_int_equal(keel_memory_live(), live);
        }
    json_decref(all);
}

/* Both networks at once: each gradient is of the weights before the step, as those of two functions
 * that are run from the same weights. */
static keel_status both(void *context, keel_trace *t)
{
    const loop *l = context;
    keel_traced images = loop_model(t, l->model[0], true, loop_input(t, "z1"));
    const keel_scalar fake =
        loop_judge(t, l, loop_call(t, "ops.StopGradient", NULL, images), "ops.OnesLike");
    const keel_scalar real = loop_judge(t, l, loop_input(t, "real"), "ops.ZerosLike");
    const keel_scalar g =
        loop_judge(t, l, loop_model(t, l->model[0], true, loop_input(t, "z2")), "ops.ZerosLike");
    loop_learn(t, (keel_term[]){ { fake, 0.5 }, { real, 0.5 } }, 2, l->model[1],
               &(keel_apply){ { "adam", ADAM(0.00390625) } });
    loop_learn(t, &(keel_term){ g, 1 }, 1, l->model[0], &(keel_apply){ { "RMSprop" } });
    return keel_trace_return_scalar(t, "g", g);
}

static keel_status apart(void *context, keel_trace *t)
{
    const loop *l = context;
    const keel_scalar g =
        loop_judge(t, l, loop_model(t, l->model[0], true, loop_input(t, "z2")), "ops.ZerosLike");
    loop_learn(t, &(keel_term){ g, 1 }, 1, l->model[0], &(keel_apply){ { "RMSprop" } });
    return KEEL_OK;
}

/* One weight of each model after a step; which: a step for both, or that of one of them. */
static void one_step(const char *devices, keel_step step, double out[2])
{
    loop l = { .dtype = KEEL_FLOAT64, .step = { step } };
    keel_strategy *s;
    keel_tensor in[INPUTS], t;
    loop_create_gan(&l);
    must(keel_strategy_create(&s, devices));
    keel_function *f = loop_function(&l, 0);
    for (int i = 0; i < l.n_input; i++) in[i] = loop_part(&l.rows[i], 0, BATCH);
    must(keel_strategy_run(s, f, in, l.n_input));
    for (int m = 0; m < 2; m++) {
        must(keel_model_get_weight(l.model[m], m ? "conv2d/kernel" : "dense/kernel", &t));
        out[m] = loop_number(&t, 7);
        keel_tensor_free(&t);
    }
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    loop_free(&l);
}

static void two_gradients_of_one_step_are_those_of_two_steps_from_the_same_weights(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0", "cpu:0-2" };
    for (int d = 0; d < 2; d++) {
        double together[2], of_d[2], of_g[2];
        one_step(devices[d], both, together);
        one_step(devices[d], loop_discriminate, of_d);
        one_step(devices[d], apart, of_g);
        assert_true(fabs(together[0] - of_g[0]) < 1e-13);
        assert_true(fabs(together[1] - of_d[1]) < 1e-13);
        assert_true(of_d[0] != of_g[0] && of_d[1] != of_g[1]);
    }
}

/* The step of fit, written as a function: dropout, batch statistics, regularizers of weights and of
 * outputs, weights of rows, and a cross-entropy of a softmax. */
static keel_status as_fit(void *context, keel_trace *t)
{
    const loop *l = context;
    keel_scalar loss = -1;
    const keel_traced y = loop_input(t, "y"), w = loop_input(t, "w");
    keel_trace_loss(t, &(keel_named){ "SparseCategoricalCrossentropy" }, y,
                    loop_model(t, l->model[0], true, loop_input(t, "x")), w, &loss);
    loop_learn(t, &(keel_term){ loss, 1 }, 1, l->model[0], &(keel_apply){ { "adam" } });
    return keel_trace_return_scalar(t, "loss", loss);
}

static void create_fitted(loop *l)
{
    keel_model *m = loop_net(l->dtype, "fitted", "[6]");
    loop_add(m, "Dense",
             KEEL_ARGS(KEEL_ARG_INT("units", 16), KEEL_ARG_STR("activation", "relu"),
                       KEEL_ARG_STR("kernel_regularizer", "l2"),
                       KEEL_ARG_STR("activity_regularizer", "l2")));
    loop_add(m, "BatchNormalization", NULL);
    loop_add(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.25)));
    loop_add(m, "Dense",
             KEEL_ARGS(KEEL_ARG_INT("units", 5), KEEL_ARG_STR("activation", "softmax")));
    loop_fill(m, 0);
    l->model[0] = m;
    l->n_input = 3;
    l->rows[0] = loop_rows(l->dtype, KEEL_DIMS(6), 5);
    must(keel_tensor_create(&l->rows[1], KEEL_INT32, KEEL_DIMS(ROWS)));
    must(keel_tensor_create(&l->rows[2], l->dtype, KEEL_DIMS(ROWS)));
    for (int64_t i = 0; i < ROWS; i++) loop_put(&l->rows[1], i, (double)(i * 7 % 5));
    for (int64_t i = 0; i < ROWS; i++) loop_put(&l->rows[2], i, (double)(i % 4) / 2);
    l->input[0] = (keel_data_field){ "x", l->dtype, *KEEL_DIMS(6) };
    l->input[1] = (keel_data_field){ "y", KEEL_INT32, { 0 } };
    l->input[2] = (keel_data_field){ "w", l->dtype, { 0 }, KEEL_ROLE_WEIGHT };
}

static void a_function_learns_what_fit_learns_to_the_bit(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-3" };
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        loop l[2] = { { .dtype = KEEL_FLOAT32, .step = { as_fit } },
                      { .dtype = KEEL_FLOAT32, .step = { as_fit } } };
        keel_strategy *s;
        keel_dataset *data;
        for (int i = 0; i < 2; i++) create_fitted(&l[i]);
        must(keel_strategy_create(&s, devices[d]));
        must(keel_dataset_from_arrays(&data, &l[0].rows[0], &l[0].rows[1], &l[0].rows[2]));
        must(keel_model_compile(
            l[0].model[0], &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" },
                                            .loss = { { "SparseCategoricalCrossentropy" } } }));
        must(keel_fit(
            l[0].model[0], s, data,
            &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH, .no_shuffle = true },
            NULL));
        keel_function *f = loop_function(&l[1], 0);
        for (int64_t at = 0; at < ROWS; at += BATCH) {
            const int64_t n = ROWS - at < BATCH ? ROWS - at : BATCH;
            keel_tensor in[INPUTS];
            for (int k = 0; k < 3; k++) in[k] = loop_part(&l[1].rows[k], at, n);
            must(keel_strategy_run(s, f, in, 3));
        }
        for (int w = 0; w < keel_model_weight_count(l[0].model[0]); w++) {
            const char *name = keel_model_weight_name(l[0].model[0], w);
            keel_tensor a, b;
            int64_t n = 1;
            must(keel_model_get_weight(l[0].model[0], name, &a));
            must(keel_model_get_weight(l[1].model[0], name, &b));
            for (int k = 0; k < a.shape.rank; k++) n *= a.shape.dim[k];
            if (memcmp(a.data, b.data, (size_t)n * sizeof(float)))
                fail_msg("%s on %s: %.9g and %.9g", name, devices[d], loop_number(&a, 0),
                         loop_number(&b, 0));
            keel_tensor_free(&a);
            keel_tensor_free(&b);
        }
        keel_function_destroy(f);
        keel_dataset_destroy(data);
        keel_strategy_destroy(s);
        for (int i = 0; i < 2; i++) loop_free(&l[i]);
    }
}

/* With keel_strategy_reproducible the weights are the same to the bit. */
static void loops_are_reproducible_on_any_devices(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        double first[2] = { 0 };
        for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
            loop l = loops[i].how;
            keel_strategy *s;
            keel_function *f[FUNCTIONS + 1] = { NULL };
            l.dtype = KEEL_FLOAT32;
            loops[i].create(&l);
            must(keel_strategy_create(&s, devices[d]));
            must(keel_strategy_reproducible(s, KEEL_SHARDS));
            for (int k = 0; k < FUNCTIONS && l.step[k]; k++) f[k] = loop_function(&l, k);
            for (int64_t at = 0; at < ROWS; at += 2 * BATCH) {
                const int64_t n = ROWS - at < 2 * BATCH ? ROWS - at : 2 * BATCH;
                keel_tensor in[INPUTS];
                for (int k = 0; k < l.n_input; k++) in[k] = loop_part(&l.rows[k], at, n);
                for (int k = 0; f[k]; k++) must(keel_strategy_run(s, f[k], in, l.n_input));
            }
            for (int m = 0; m < l.n_golden; m++) {
                double sum = 0;
                for (int w = 0; w < keel_model_weight_count(l.model[m]); w++) {
                    keel_tensor t;
                    int64_t n = 1;
                    must(keel_model_get_weight(l.model[m], keel_model_weight_name(l.model[m], w),
                                               &t));
                    for (int k = 0; k < t.shape.rank; k++) n *= t.shape.dim[k];
                    for (int64_t k = 0; k < n; k++) sum += loop_number(&t, k) * (double)(k % 7 + 1);
                    keel_tensor_free(&t);
                }
                if (d == 0) first[m] = sum;
                if (sum != first[m])
                    fail_msg("%s on %s: %.17g and %.17g", loops[i].golden, devices[d], first[m],
                             sum);
            }
            for (int k = 0; f[k]; k++) keel_function_destroy(f[k]);
            keel_strategy_destroy(s);
            loop_free(&l);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_learn_what_keras_learns_with_a_train_step),
        cmocka_unit_test(two_gradients_of_one_step_are_those_of_two_steps_from_the_same_weights),
        cmocka_unit_test(a_function_learns_what_fit_learns_to_the_bit),
        cmocka_unit_test(loops_are_reproducible_on_any_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
