/* Losses and metrics that are programs, and terms that a layer adds to the loss, as the package for
 * Python writes them, against what the functions gave in the real Keras: golden/values.json, made
 * by golden/make_values.py, whose arithmetic is repeated here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "keel/keel.h"
#include "layers/package.h"
#include "model/parts.h"
#include "must.h"

enum { BATCH = 8, ROWS = 26, EPOCHS = 2, INPUTS = 6, OUTPUTS = 4 };
static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };

static struct {
    float x[ROWS * INPUTS], y[ROWS * OUTPUTS], weight[ROWS];
} rows;

static int64_t number(int64_t i, int64_t k, int64_t step, int64_t modulus)
{
    return (i * 131 + k * 37 + i * k * step) % modulus;
}

/* adds: a mean over what a Dense(3) makes of the output is a term of the loss. */
static keel_model *model(bool adds)
{
    const keel_shape shape = { 1, { INPUTS } };
    keel_symbol x;
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, &shape, NULL, &x));
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_STR("name", "out"), KEEL_ARG_INT("units", OUTPUTS),
                            KEEL_ARG_STR("activation", "sigmoid")),
                  x);
    if (adds) {
        const keel_arg *const dense =
            KEEL_ARGS(KEEL_ARG_INT("units", 3), KEEL_ARG_STR("activation", "tanh"));
        const keel_symbol in[2] = { x, must_call(m, "Dense", dense, x) };
        must(keel_model_call(m, KEEL_ADDED_LOSS, NULL, in, 2, &x));
    }
    must(keel_model_outputs(m, &x, 1));
    for (int k = 0; k < m->n_weight; k++)
        for (int64_t n = 0; n < keel_shape_count(&m->weight[k].info.spec.shape); n++)
            ((float *)m->weight[k].data)[n] = (float)((n * 7919 + 131 * k) % 1021 - 510) / 512;
    return m;
}

enum { WITHOUT_TARGETS = 1, WITH_TARGETS, WITH_WEIGHTS }; /* how many fields rows have */

static keel_dataset *data(int fields)
{
    keel_dataset *d;
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t k = 0; k < INPUTS; k++)
            rows.x[i * INPUTS + k] = (float)(number(i, k, 7, 256) - 128) / 128;
        for (int64_t k = 0; k < OUTPUTS; k++)
            rows.y[i * OUTPUTS + k] = (float)(number(i, k, 3, 3) / 2);
        rows.weight[i] = (float)(i % 4) / 2;
    }
    const keel_array_field field[] = {
        { "x", KEEL_ROLE_INPUT, NULL, { KEEL_FLOAT32, { 2, { ROWS, INPUTS } }, rows.x }, { 0 } },
        { "y", KEEL_ROLE_TARGET, NULL, { KEEL_FLOAT32, { 2, { ROWS, OUTPUTS } }, rows.y }, { 0 } },
        { "w", KEEL_ROLE_WEIGHT, NULL, { KEEL_FLOAT32, { 1, { ROWS } }, rows.weight }, { 0 } },
    };
    must(keel_dataset_from_fields(&d, field, fields));
    return d;
}

static keel_status compile(keel_model *m, const json_t *config)
{
    KEEL_TRY(keel_compiled_from_config(m, config, false, &m->compiled));
    return keel_compiled_state_create(m, &m->compiled);
}

static void check_logs(const json_t *k, size_t index, const keel_history *h)
{
    assert_int_equal((size_t)h->count, json_object_size(json_object_get(k, "logs")));
    for (int i = 0; i < h->count; i++)
        for (size_t e = 0; e < EPOCHS; e++) {
            const json_t *want = json_object_get(json_object_get(k, "logs"), h->name[i]);
            const double got = h->value[e * (size_t)h->count + (size_t)i];
            const double wanted = json_number_value(json_array_get(want, e));
            if (!golden_near(got, wanted, 2e-6))
                fail_msg("case %zu: %s is %.9g in epoch %zu instead of %.9g", index, h->name[i],
                         got, e, wanted);
        }
}

static void check_case(const json_t *k, size_t index, const char *on)
{
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = EPOCHS,
                                       .no_shuffle = true };
    const bool adds = json_is_true(json_object_get(k, "adds"));
    const bool weighted = json_is_true(json_object_get(k, "weighted"));
    keel_model *m = model(adds);
    keel_dataset *d = data(weighted ? WITH_WEIGHTS : adds ? WITHOUT_TARGETS : WITH_TARGETS);
    keel_strategy *s;
    keel_history h;
    must(compile(m, json_object_get(k, "compile")));
    must(keel_strategy_create(&s, on));
    must(keel_fit(m, s, d, &options, &h));
    check_logs(k, index, &h);
    for (int i = 0; i < m->n_weight; i++) {
        const json_t *want = json_array_get(json_object_get(k, "weights"), (size_t)i);
        for (size_t j = 0; j < json_array_size(want); j++) {
            const double got = ((const float *)m->weight[i].data)[j];
            if (!golden_near(got, json_number_value(json_array_get(want, j)), 2e-6))
                fail_msg("case %zu, %s: number %zu of weight %d is %.9g instead of %.9g", index, on,
                         j, i, got, json_number_value(json_array_get(want, j)));
        }
    }
    keel_history_free(&h);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void functions_train_as_in_keras_on_any_number_of_devices(void **state)
{
    (void)state;
    json_t *cases = golden_load("values.json"), *k;
    size_t index;
    json_array_foreach(cases, index, k) for (size_t i = 0; i < sizeof devices / sizeof *devices;
                                             i++) check_case(k, index, devices[i]);
    json_decref(cases);
}

/* The compile_config of a case with another program for its loss. */
static json_t *with_program(json_t *program)
{
    json_t *cases = golden_load("values.json");
    json_t *config = json_deep_copy(json_object_get(json_array_get(cases, 0), "compile"));
    json_t *loss = json_object_get(json_object_get(config, "loss"), "config");
    json_object_set_new(loss, "program", program);
    json_decref(cases);
    return config;
}

static json_t *functional(const char *layers, const char *inputs, const char *output)
{
    json_t *p = json_object();
    json_object_set_new(p, "class_name", json_string("Functional"));
    json_t *config = json_object();
    json_object_set_new(config, "name", json_string("values"));
    json_object_set_new(config, "layers", json_loads(layers, 0, NULL));
    json_object_set_new(config, "input_layers", json_loads(inputs, 0, NULL));
    json_object_set_new(config, "output_layers", json_loads(output, 0, NULL));
    json_object_set_new(p, "config", config);
    return p;
}

#define INPUT(name)                                                                                \
    "{\"class_name\": \"InputLayer\", \"name\": \"" name "\", \"config\": {\"name\": \"" name      \
    "\", \"batch_shape\": [null, 4], \"dtype\": \"float32\"}, \"inbound_nodes\": []}"
#define DENSE                                                                                      \
    "{\"class_name\": \"Dense\", \"name\": \"d\", \"config\": {\"name\": \"d\", \"units\": 1}, "   \
    "\"inbound_nodes\": [{\"args\": [{\"class_name\": \"__keras_tensor__\", \"config\": "          \
    "{\"shape\": [null, 4], \"dtype\": \"float32\", \"keras_history\": [\"b\", 0, 0]}}], "         \
    "\"kwargs\": {}}]}"

static void a_program_of_another_form_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *layers, *inputs, *output, *says;
    } wrong[] = {
        { "[" INPUT("a") "]", "[[\"a\", 0, 0]]", "[[\"a\", 0, 0]]", "two inputs" },
        { "[" INPUT("a") ", " INPUT("b") ", " DENSE "]", "[[\"a\", 0, 0], [\"b\", 0, 0]]",
          "[[\"d\", 0, 0]]", "no weights" },
        { "[" INPUT("a") ", " INPUT("b") "]", "[[\"a\", 0, 0], [\"b\", 0, 0]]", "[[\"c\", 0, 0]]",
          "c" },
        { "7", "[]", "[]", "layers" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        keel_model *m = model(false);
        json_t *config =
            with_program(functional(wrong[i].layers, wrong[i].inputs, wrong[i].output));
        assert_true(compile(m, config) < 0);
        if (!strstr(keel_error(), wrong[i].says))
            fail_msg("'%s' is not in: %s", wrong[i].says, keel_error());
        json_decref(config);
        keel_model_destroy(m);
    }
    keel_model *m = model(false);
    json_t *none = with_program(json_null());
    assert_int_equal(compile(m, none), KEEL_EARG);
    json_decref(none);
    keel_model_destroy(m);
}

static void targets_that_do_not_fit_the_program_are_refused(void **state)
{
    (void)state;
    json_t *cases = golden_load("values.json");
    float x[8 * INPUTS] = { 0 }, y[8 * 3] = { 0 };
    const keel_array_field field[] = {
        { "x", KEEL_ROLE_INPUT, NULL, { KEEL_FLOAT32, { 2, { 8, INPUTS } }, x }, { 0 } },
        { "y", KEEL_ROLE_TARGET, NULL, { KEEL_FLOAT32, { 2, { 8, 3 } }, y }, { 0 } },
    };
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = 1 };
    keel_model *m = model(false);
    keel_dataset *d;
    keel_strategy *s;
    keel_history h;
    must(compile(m, json_object_get(json_array_get(cases, 0), "compile")));
    must(keel_dataset_from_fields(&d, field, 2));
    must(keel_strategy_create(&s, "cpu:0"));
    assert_int_equal(keel_fit(m, s, d, &options, &h), KEEL_ESHAPE);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    json_decref(cases);
}

/* Of the case's model: it is compiled, and evaluated. */
static void fail_each_allocation(const json_t *k, const keel_dataset *d)
{
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH };
    keel_strategy *strategy;
    must(keel_strategy_create(&strategy, "cpu:0"));
    bool done = false;
    for (int64_t i = 0; !done; i++) {
        const int64_t live = keel_memory_live();
        keel_logs logs;
        keel_model *m = model(json_is_true(json_object_get(k, "adds")));
        keel_memory_fail_at(i);
        keel_status s = compile(m, json_object_get(k, "compile"));
        if (s >= 0) s = keel_evaluate(m, strategy, d, &options, &logs);
        keel_memory_fail_at(-1);
        done = s >= 0;
        if (s < 0 && s != KEEL_ENOMEM) fail_msg("request %d: %s", (int)i, keel_error());
        keel_model_destroy(m);
        assert_int_equal(keel_memory_live(), live);
        assert_true(i < 5000);
    }
    keel_strategy_destroy(strategy);
}

static void each_failed_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    json_t *cases = golden_load("values.json");
    keel_dataset *d = data(WITH_WEIGHTS);
    fail_each_allocation(json_array_get(cases, 0), d);
    fail_each_allocation(json_array_get(cases, json_array_size(cases) - 1), d);
    keel_dataset_destroy(d);
    json_decref(cases);
}

/* Neither a loss nor a term of one. */
static void a_model_that_nothing_trains_is_refused(void **state)
{
    (void)state;
    json_t *cases = golden_load("values.json");
    const json_t *without = json_array_get(cases, json_array_size(cases) - 1);
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = 1 };
    keel_model *m = model(false);
    keel_dataset *d = data(WITHOUT_TARGETS);
    keel_strategy *s;
    keel_history h;
    must(compile(m, json_object_get(without, "compile")));
    must(keel_strategy_create(&s, "cpu:0"));
    assert_int_equal(keel_fit(m, s, d, &options, &h), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "has no loss"));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    json_decref(cases);
}

static void draws_depend_on_the_seed_alone(void **state)
{
    (void)state;
    const keel_shape shape = { 1, { INPUTS } };
    keel_dataset *d = data(WITHOUT_TARGETS);
    keel_tensor first = { 0 };
    keel_symbol x;
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, &shape, NULL, &x));
    x = must_call(m, KEEL_DRAWN, NULL, x);
    must(keel_model_outputs(m, &x, 1));
    for (uint64_t i = 0; i < 5; i++) { /* four numbers of devices, and another seed */
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH,
                                           .seed = 3 + i / 4 };
        keel_tensor y;
        keel_strategy *s;
        must(keel_strategy_create(&s, devices[i % 4]));
        must(keel_predict(m, s, d, &options, &y));
        keel_strategy_destroy(s);
        if (i == 0) {
            first = y;
            continue;
        }
        const size_t n_bytes = sizeof rows.x;
        assert_int_equal(memcmp(y.data, first.data, n_bytes) == 0, i < 4);
        assert_memory_not_equal(y.data, rows.x, n_bytes);
        keel_tensor_free(&y);
    }
    keel_tensor_free(&first);
    keel_model_destroy(m);
    keel_dataset_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failed_allocation_is_reported_and_nothing_leaks),
        cmocka_unit_test(functions_train_as_in_keras_on_any_number_of_devices),
        cmocka_unit_test(a_model_that_nothing_trains_is_refused),
        cmocka_unit_test(a_program_of_another_form_is_refused),
        cmocka_unit_test(draws_depend_on_the_seed_alone),
        cmocka_unit_test(targets_that_do_not_fit_the_program_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
