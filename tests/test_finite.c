/* Weights that an update of finite gradients made infinite or NaN: no fit ends without saying so.
 */
#include <dirent.h>
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
#include "base/memory.h"
#include "keel/keel.h"
#include "must.h"

enum { ROWS = 8, FEATURES = 3 };

/* A rate with which the first update overflows, though loss and gradients are far from it. */
#define OVERFLOWS KEEL_ARG_FLOAT("learning_rate", 1e30)
#define SCALED                                                                                     \
    KEEL_ARG_JSON("inner_optimizer", "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": "  \
                                     "1e30}}"),                                                    \
        KEEL_ARG_FLOAT("initial_scale", 8)
/* The products of Muon grow without bound. */
#define GROWS                                                                                      \
    KEEL_ARG_FLOAT("muon_a", 1e15), KEEL_ARG_FLOAT("muon_b", -1e15), KEEL_ARG_INT("ns_steps", 9)

static const struct {
    const char *what, *optimizer;
    keel_arg args[4];
    float large; /* the inputs */
    int64_t batch, epochs;
    const char *callback;
    const char *devices;
    keel_status want;
    const char *says; /* the error, or the note */
} cases[] = {
    { "the last step of an epoch",
      "SGD",
      { OVERFLOWS },
      1e9F,
      8,
      3,
      NULL,
      "cpu:0",
      KEEL_ENUMERIC,
      "epoch 1, after step 1: the weight 'dense/kernel' is not finite" },
    { "the step before another, whose loss shows it",
      "SGD",
      { OVERFLOWS },
      1e9F,
      4,
      1,
      NULL,
      "cpu:0-1",
      KEEL_ENUMERIC,
      "epoch 1, after step 1: the weight 'dense/kernel'" },
    { "steps after it are skipped by a loss scale",
      "LossScaleOptimizer",
      { SCALED },
      1e9F,
      1,
      1,
      NULL,
      "cpu:0-2",
      KEEL_ENUMERIC,
      "epoch 1, after step 1: the weight 'dense/kernel'" },
    { "arguments with which Muon overflows",
      "Muon",
      { GROWS },
      1,
      8,
      1,
      NULL,
      "cpu:0",
      KEEL_ENUMERIC,
      "the weight 'dense/kernel' is not finite" },
    { "TerminateOnNaN ends the training",
      "SGD",
      { OVERFLOWS },
      1e9F,
      8,
      3,
      "TerminateOnNaN",
      "cpu:0",
      KEEL_OK,
      "training stopped: epoch 1, after step 1: the weight 'dense/kernel'" },
    { "a rate that fits",
      "SGD",
      { KEEL_ARG_FLOAT("learning_rate", 1e-3) },
      1,
      3,
      2,
      NULL,
      "cpu:0",
      KEEL_OK,
      NULL },
};
enum { CASES = sizeof cases / sizeof *cases };

static keel_model *network(int i)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    must(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", 2), KEEL_ARG_STR("kernel_initializer", "ones"))));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE,
                                                .optimizer = { cases[i].optimizer, cases[i].args },
                                                .loss = { { "mse" } } }));
    return m;
}

static keel_status fit(keel_model *m, int i, const keel_checkpoint_options *checkpoint,
                       keel_history *h)
{
    float x[ROWS * FEATURES], y[ROWS * 2] = { 0 };
    for (int k = 0; k < ROWS * FEATURES; k++) x[k] = cases[i].large * (float)(1 + k % 3);
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { ROWS, FEATURES } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 2, { ROWS, 2 } }, y };
    keel_callback *callback = NULL;
    keel_strategy *s;
    keel_dataset *d;
    must(keel_strategy_create(&s, cases[i].devices));
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    if (cases[i].callback) must(keel_callback_create(&callback, cases[i].callback, NULL));
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = cases[i].batch,
                                 .epochs = cases[i].epochs, .callbacks = KEEL_CALLBACKS(callback),
                                 .checkpoint = checkpoint };
    const keel_status status = keel_fit(m, s, d, &o, h);
    keel_callback_destroy(callback);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    return status;
}

static void a_fit_whose_weights_are_lost_says_so(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        keel_history h = { 0 };
        keel_model *m = network(i);
        const keel_status got = fit(m, i, NULL, &h);
        const char *said = got < 0 ? keel_error() : h.note;
        if (got != cases[i].want)
            fail_msg("%s: %d, %s", cases[i].what, (int)got, got < 0 ? keel_error() : "no error");
        if (cases[i].says ? !said || !strstr(said, cases[i].says) : h.note != NULL)
            fail_msg("%s: it says '%s'", cases[i].what, said ? said : "nothing");
        if (cases[i].callback) assert_int_equal(h.epochs, 1);
        keel_history_free(&h);
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static int checkpoints_in(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[512];
        n += strstr(e->d_name, ".keras") != NULL;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    if (d) closedir(d);
    return n;
}

/* Or the next fit would go on from them. */
static void no_checkpoint_has_such_weights(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        char folder[] = "/tmp/keel_test_XXXXXX";
        keel_history h = { 0 };
        keel_model *m = network(i);
        assert_non_null(mkdtemp(folder));
        const keel_checkpoint_options c = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                            .every_steps = 1 };
        assert_int_equal(fit(m, i, &c, &h), cases[i].want);
        const int n = checkpoints_in(folder);
        if (cases[i].says ? n > 0 : n == 0) fail_msg("%s: %d checkpoints", cases[i].what, n);
        rmdir(folder);
        keel_history_free(&h);
        keel_model_destroy(m);
    }
}

/* Units that are switched off, by a bias of -infinity in a frozen layer. */
static void what_the_model_was_given_is_left_alone(void **state)
{
    static const float bias[FEATURES] = { 0.5F, -INFINITY, 0 };
    keel_history h = { 0 };
    keel_model *m;
    (void)state;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    must(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", FEATURES), KEEL_ARG_STR("activation", "relu"))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 2))));
    must(keel_model_set_weight(m, "dense/bias",
                               &(keel_tensor){ KEEL_FLOAT32, { 1, { FEATURES } }, (void *)bias }));
    must(keel_model_set_trainable(m, "dense", false));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
    must(fit(m, CASES - 1, NULL, &h));
    keel_history_free(&h);
    keel_model_destroy(m);
}

/* Put stages, written as "name argument number", on a dataset, which they take. */
static keel_dataset *through(keel_dataset *d, const char *stages)
{
    char copy[64], *rest;
    snprintf(copy, sizeof copy, "%s", stages);
    for (char *part = strtok_r(copy, "|", &rest); part; part = strtok_r(NULL, "|", &rest)) {
        char name[32], key[32], value[32];
        keel_dataset *next;
        const int n = sscanf(part, " %31s %31s %31s", name, key, value);
        must(keel_dataset_apply(&next, name, n == 3 ? KEEL_ARGS(KEEL_ARG_JSON(key, value)) : NULL,
                                &d, 1));
        keel_dataset_destroy(d);
        d = next;
    }
    return d;
}

/* Rows are shuffled, by fit or by a stage, so the place of a row in the epoch would name another
 * one. */
static void a_row_is_named_by_its_number_in_the_data(void **state)
{
    static const char *const stages[] = { "", "shuffle",
                                          "shuffle buffer_size 4 | batch batch_size 3",
                                          "repeat count 2 | skip count 8 | shuffle" };
    float x[ROWS * FEATURES] = { 0 }, y[ROWS * 2] = { 0 };
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { ROWS, FEATURES } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 2, { ROWS, 2 } }, y };
    (void)state;
    for (size_t k = 0; k < sizeof stages / sizeof *stages; k++)
        for (int bad = 0; bad < ROWS; bad++)
            for (int threads = 0; threads < 2; threads++) {
                char named[40];
                keel_strategy *s;
                keel_dataset *d;
                keel_model *m = network(CASES - 1);
                x[bad * FEATURES] = NAN;
                must(keel_strategy_create(&s, "cpu:0-1"));
                must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
                d = through(d, stages[k]);
                const keel_fit_options o = { KEEL_FIT_OPTIONS,
                                             .batch_size = strstr(stages[k], "batch ") ? 0 : 3,
                                             .seed = 5, .threads = threads };
                assert_int_equal(keel_fit(m, s, d, &o, NULL), KEEL_ENUMERIC);
                snprintf(named, sizeof named, "the loss of row %d of arrays, ", bad);
                if (!strstr(keel_error(), named))
                    fail_msg("row %d, '%s': %s", bad, stages[k], keel_error());
                x[bad * FEATURES] = 0;
                keel_dataset_destroy(d);
                keel_strategy_destroy(s);
                keel_model_destroy(m);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_named_by_its_number_in_the_data),
        cmocka_unit_test(a_fit_whose_weights_are_lost_says_so),
        cmocka_unit_test(no_checkpoint_has_such_weights),
        cmocka_unit_test(what_the_model_was_given_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
