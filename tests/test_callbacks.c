/* Callbacks: their order, names and values as real Keras has them, on 1 to 4 devices; the model
 * while it trains; what a callback may not do. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "io/png_write.h"
#include "io/tfrecord.h"
#include "must.h"
#include "train/callbacks/_monitor.h"
#include "train/callbacks/_texts.h"

enum { ROWS = 10, TESTED = 6, FEATURES = 3, BATCH = 4, LANES = 4 };
static float x[ROWS * FEATURES], y[ROWS], vx[TESTED * FEATURES], vy[TESTED];
static keel_strategy *strategy[LANES + 1];
static keel_dataset *rows, *tested;
static json_t *golden;
static const char *folder;

static keel_dataset *arrays(int64_t n, float *in, float *out)
{
    keel_dataset *d;
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { n, FEATURES } }, in };
    const keel_tensor ty = { KEEL_FLOAT32, { 2, { n, 1 } }, out };
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    return d;
}

static int start(void **unused)
{
    (void)unused;
    char devices[32];
    for (int i = 1; i <= LANES; i++) {
        snprintf(devices, sizeof devices, i == 1 ? "cpu:0" : "cpu:0-%d", i - 1);
        if (keel_strategy_create(&strategy[i], devices) < 0) return -1;
    }
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)sin(1.3 * i);
    for (int i = 0; i < ROWS; i++) y[i] = (float)(cos(0.7 * i) + 0.5);
    for (int i = 0; i < TESTED * FEATURES; i++) vx[i] = (float)sin(0.9 * i + 1);
    for (int i = 0; i < TESTED; i++) vy[i] = (float)(cos(1.1 * i) - 0.2);
    rows = arrays(ROWS, x, y);
    tested = arrays(TESTED, vx, vy);
    golden = golden_load("callbacks.json");
    folder = getenv("KEEL_TEST_TMP") ? getenv("KEEL_TEST_TMP") : "/tmp";
    return chdir(folder); /* where callbacks of no folder write */
}

static int finish(void **unused)
{
    (void)unused;
    for (int i = 1; i <= LANES; i++) keel_strategy_destroy(strategy[i]);
    keel_dataset_destroy(rows);
    keel_dataset_destroy(tested);
    json_decref(golden);
    return 0;
}

static keel_model *network(const char *optimizer, const keel_arg *args)
{
    keel_model *m;
    must(keel_model_load(&m, golden_path("callbacks.keras")));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { optimizer, args },
                                                .loss = { { "mse" } }, .metrics = { { "mae" } } }));
    return m;
}

static keel_model *sgd(double rate)
{
    return network("sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", rate)));
}

static keel_fit_options options(int64_t epochs, const keel_callback *const *callbacks)
{
    return (keel_fit_options){ KEEL_FIT_OPTIONS,      .batch_size = BATCH,
                               .epochs = epochs,      .no_shuffle = true,
                               .validation = tested,  .validation_batch_size = BATCH,
                               .callbacks = callbacks };
}

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

static void near_weights(const keel_model *m, const json_t *want, const char *what)
{
    float w[64];
    const int64_t n = weights_of(m, w);
    assert_int_equal(n, json_array_size(want));
    for (int64_t i = 0; i < n; i++)
        if (!golden_near((double)w[i], json_number_value(json_array_get(want, (size_t)i)), 2e-5))
            fail_msg("%s: weight %d is %g, Keras has %g", what, (int)i, (double)w[i],
                     json_number_value(json_array_get(want, (size_t)i)));
}

static void same_history(const keel_history *h, const json_t *want, const char *what)
{
    const char *name;
    json_t *column;
    int at = 0;
    assert_int_equal(h->count, json_object_size(want));
    json_object_foreach((json_t *)want, name, column)
    {
        assert_string_equal(h->name[at], name);
        if ((size_t)h->epochs != json_array_size(column))
            fail_msg("%s: %d epochs, Keras has %d", what, (int)h->epochs,
                     (int)json_array_size(column));
        for (int64_t e = 0; e < h->epochs; e++) {
            const double k = json_number_value(json_array_get(column, (size_t)e));
            if (!golden_near(h->value[e * h->count + at], k, 2e-5))
                fail_msg("%s: %s of epoch %d is %g, Keras has %g", what, name, (int)e,
                         h->value[e * h->count + at], k);
        }
        at++;
    }
}

/* ---- the order of the calls ------------------------------------------------------------------ */

typedef struct listener {
    const char *what;
    const json_t *want;
    size_t at;
    int64_t stop_after; /* steps of the fit; 0: never */
    int64_t steps;
} listener;

static void hear(listener *l, const char *name, int64_t number, const keel_moment *m)
{
    const json_t *call = json_array_get(l->want, l->at++), *names, *values;
    if (!call) fail_msg("%s: %s where Keras calls nothing", l->what, name);
    if (strcmp(name, json_string_value(json_array_get(call, 0))))
        fail_msg("%s: call %d is %s, Keras calls %s", l->what, (int)l->at, name,
                 json_string_value(json_array_get(call, 0)));
    if (number != json_integer_value(json_array_get(call, 1)))
        fail_msg("%s: %s of %d, Keras has %d", l->what, name, (int)number,
                 (int)json_integer_value(json_array_get(call, 1)));
    if (strstr(name, "_batch_")) {
        const int64_t all = m->training ? ROWS : TESTED, done = m->step * BATCH;
        assert_int_equal(m->all_rows, all);
        assert_int_equal(m->steps, (all + BATCH - 1) / BATCH);
        assert_int_equal(m->rows, done < all ? done : all);
    }
    names = json_array_get(call, 2);
    values = json_array_get(call, 3);
    if (!strcmp(name, "train_begin") || !strcmp(name, "train_end"))
        return; /* names to come, and
                   those of the epoch */
    assert_int_equal(m->logs->count, json_array_size(names));
    for (int i = 0; i < m->logs->count; i++) {
        assert_string_equal(m->logs->name[i], json_string_value(json_array_get(names, (size_t)i)));
        if (!golden_near(m->logs->value[i], json_number_value(json_array_get(values, (size_t)i)),
                         2e-5))
            fail_msg("%s: %s, %s is %.9g", l->what, name, m->logs->name[i], m->logs->value[i]);
    }
}

#define HEAR(name, number)                                                                         \
    static keel_status hear_##name(void *context, const keel_moment *m)                            \
    {                                                                                              \
        hear(context, #name, number, m);                                                           \
        return KEEL_OK;                                                                            \
    }
HEAR(train_begin, -1)
HEAR(train_end, -1)
HEAR(epoch_begin, m->epoch)
HEAR(epoch_end, m->epoch)
HEAR(train_batch_begin, m->step)
HEAR(test_begin, -1)
HEAR(test_end, -1)
HEAR(test_batch_begin, m->step)
HEAR(test_batch_end, m->step - 1)
HEAR(predict_begin, -1)
HEAR(predict_end, -1)
HEAR(predict_batch_begin, m->step)

static keel_status hear_train_batch_end(void *context, const keel_moment *m)
{
    listener *l = context;
    hear(l, "train_batch_end", m->step - 1, m);
    return ++l->steps == l->stop_after ? KEEL_END : KEEL_OK;
}

static keel_status hear_predict_batch_end(void *context, const keel_moment *m)
{
    assert_int_equal(m->output_count, 1);
    assert_int_equal(m->outputs[0].shape.dim[0], m->step == 1 ? 4 : 2);
    hear(context, "predict_batch_end", m->step - 1, m);
    return KEEL_OK;
}

static keel_callback listening(listener *l)
{
    return (keel_callback){ KEEL_CALLBACK,
                            .context = l,
                            .on_train_begin = hear_train_begin,
                            .on_train_end = hear_train_end,
                            .on_epoch_begin = hear_epoch_begin,
                            .on_epoch_end = hear_epoch_end,
                            .on_train_batch_begin = hear_train_batch_begin,
                            .on_train_batch_end = hear_train_batch_end,
                            .on_test_begin = hear_test_begin,
                            .on_test_end = hear_test_end,
                            .on_test_batch_begin = hear_test_batch_begin,
                            .on_test_batch_end = hear_test_batch_end,
                            .on_predict_begin = hear_predict_begin,
                            .on_predict_end = hear_predict_end,
                            .on_predict_batch_begin = hear_predict_batch_begin,
                            .on_predict_batch_end = hear_predict_batch_end };
}

static void calls_come_in_keras_order_with_keras_logs(void **unused)
{
    (void)unused;
    for (int lanes = 1; lanes <= LANES; lanes++) {
        listener l = { .what = "fit, evaluate, predict", .want = json_object_get(golden, "order") };
        const keel_callback c = listening(&l);
        keel_model *m = sgd(0.1);
        keel_logs logs;
        keel_tensor out;
        keel_fit_options o = options(2, KEEL_CALLBACKS(&c));
        o.validation_freq = 2;
        must(keel_fit(m, strategy[lanes], rows, &o, NULL));
        o = options(1, KEEL_CALLBACKS(&c));
        must(keel_evaluate(m, strategy[lanes], tested, &o, &logs));
        must(keel_predict(m, strategy[lanes], tested, &o, &out));
        assert_int_equal(l.at, json_array_size(l.want));
        keel_tensor_free(&out);
        keel_model_destroy(m);
    }
}

static void a_stop_after_a_step_is_validated_and_ends_the_fit(void **unused)
{
    (void)unused;
    for (int lanes = 1; lanes <= LANES; lanes++) {
        listener l = { .what = "a stop",
                       .want = json_object_get(golden, "stopped"),
                       .stop_after = 4 };
        const keel_callback c = listening(&l);
        keel_model *m = sgd(0.1);
        keel_history h;
        const keel_fit_options o = options(5, KEEL_CALLBACKS(&c));
        must(keel_fit(m, strategy[lanes], rows, &o, &h));
        assert_int_equal(l.at, json_array_size(l.want));
        assert_true(h.stopped);
        assert_int_equal(h.epochs, 2);
        assert_false(isnan(h.value[h.count + 2]));
        keel_history_free(&h);
        keel_model_destroy(m);
    }
}

static keel_status stop_at_once(void *context, const keel_moment *at)
{
    (void)context;
    (void)at;
    return KEEL_END;
}

static keel_status stop_in_the_second(void *context, const keel_moment *at)
{
    (void)context;
    return at->epoch == 1 ? KEEL_END : KEEL_OK;
}

/* Keras looks at stop_training after a step, whenever it was set. */
static void a_stop_before_the_first_step_comes_after_it(void **unused)
{
    (void)unused;
    const struct {
        const char *what;
        keel_callback c;
        int epochs;
    } cases[] = {
        { "at the begin of the training", { KEEL_CALLBACK, .on_train_begin = stop_at_once }, 1 },
        { "at the begin of an epoch", { KEEL_CALLBACK, .on_epoch_begin = stop_at_once }, 1 },
        { "at the begin of a later one",
          { KEEL_CALLBACK, .on_epoch_begin = stop_in_the_second },
          2 },
        { "before a step", { KEEL_CALLBACK, .on_train_batch_begin = stop_at_once }, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int lanes = 1; lanes <= LANES; lanes++) {
            keel_model *m = sgd(0.1);
            keel_history h;
            const keel_fit_options o = options(4, KEEL_CALLBACKS(&cases[i].c));
            must(keel_fit(m, strategy[lanes], rows, &o, &h));
            const int64_t full = (h.rows - 1) / o.batch_size; /* of the epochs before */
            if (!h.stopped || h.epochs != cases[i].epochs ||
                (cases[i].epochs == 1 && h.steps != 1) || h.steps != full + 1 ||
                isnan(h.value[h.count * (h.epochs - 1)]))
                fail_msg("%s: %d epochs, %d steps, stopped %d", cases[i].what, (int)h.epochs,
                         (int)h.steps, h.stopped);
            keel_history_free(&h);
            keel_model_destroy(m);
        }
}

/* ---- Keras's callbacks ----------------------------------------------------------------------- */

static void text_of(char *out, size_t size, const json_t *c)
{
    const char *key;
    json_t *v;
    int n = snprintf(out, size, "%s(", golden_text(c, "callback"));
    json_object_foreach(json_object_get(c, "args"), key, v)
    {
        char *value = json_dumps(v, JSON_ENCODE_ANY);
        n += snprintf(out + n, size - (size_t)n, "%s%s=%s", out[n - 1] == '(' ? "" : ", ", key,
                      value);
        free(value);
    }
    snprintf(out + n, size - (size_t)n, ")");
}

static void epochs_rates_and_weights_are_those_of_keras(void **unused)
{
    (void)unused;
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(golden, "cases"), i, c)
    {
        for (int lanes = 1; lanes <= LANES; lanes++) {
            char text[300];
            keel_callback *callback;
            keel_history h;
            keel_model *m = sgd(golden_number(c, "rate"));
            text_of(text, sizeof text, c);
            must(keel_callback_parse(&callback, text));
            const keel_fit_options o = options(14, KEEL_CALLBACKS(callback));
            must(keel_fit(m, strategy[lanes], rows, &o, &h));
            same_history(&h, json_object_get(c, "history"), golden_text(c, "name"));
            near_weights(m, json_object_get(c, "weights"), golden_text(c, "name"));
            keel_history_free(&h);
            keel_callback_destroy(callback);
            keel_model_destroy(m);
        }
    }
}

/* The course that a value takes, which no training gives it. */
static keel_status name_a_score(void *context, const keel_moment *at)
{
    (void)context;
    return keel_logs_set(at->logs, "score", NAN);
}

static keel_status set_a_score(void *context, const keel_moment *at)
{
    const json_t *c = context;
    const double score =
        json_number_value(json_array_get(json_object_get(c, "course"), (size_t)at->epoch));
    const bool more = !strcmp(golden_text(json_object_get(c, "args"), "mode"), "max");
    return keel_logs_set(at->logs, "score", more ? -score : score);
}

static void what_follows_from_a_course_of_values_is_what_keras_decides(void **unused)
{
    (void)unused;
    size_t i;
    json_t *c, *cases = golden_load("courses.json");
    json_array_foreach(cases, i, c)
    {
        char text[500];
        keel_callback *callback;
        keel_history h;
        keel_model *m = sgd(0.5);
        const int64_t epochs = (int64_t)golden_number(c, "epochs");
        const bool rates = !strcmp(golden_text(c, "callback"), "ReduceLROnPlateau");
        json_t *args = json_object_get(c, "args");
        json_object_set_new(args, "monitor", json_string("score"));
        const bool saves = !strcmp(golden_text(c, "callback"), "ModelCheckpoint");
        char path[200];
        if (saves) {
            snprintf(path, sizeof path, "%s/course-%zu-{epoch}.weights.h5", folder, i);
            json_object_set_new(args, "filepath", json_string(path));
        }
        text_of(text, sizeof text, c);
        must(keel_callback_parse(&callback, text));
        const keel_callback course = { KEEL_CALLBACK, .context = c, .on_train_begin = name_a_score,
                                       .on_epoch_end = set_a_score };
        keel_fit_options o = options(14, KEEL_CALLBACKS(&course, callback));
        o.validation = NULL;
        must(keel_fit(m, strategy[1], rows, &o, &h));
        if (h.epochs != epochs)
            fail_msg("case %zu, %s: %d epochs, Keras has %d", i, text, (int)h.epochs, (int)epochs);
        for (int64_t e = 0; e < epochs && rates; e++) {
            const double got = h.value[e * h.count + h.count - 1];
            const double want =
                json_number_value(json_array_get(json_object_get(c, "rates"), (size_t)e));
            assert_string_equal(h.name[h.count - 1], "learning_rate");
            if (!(fabs(got - want) <= 1e-6 * want))
                fail_msg("case %zu, %s: rate %g of epoch %d, Keras has %g", i, text, got, (int)e,
                         want);
        }
        size_t saved = 0;
        for (int e = 1; e <= 14 && saves; e++) {
            struct stat there;
            const json_t *want = json_array_get(json_object_get(c, "saved"), saved);
            const bool due = want && json_integer_value(want) == e;
            snprintf(path, sizeof path, "%s/course-%zu-%d.weights.h5", folder, i, e);
            if ((stat(path, &there) == 0) != due)
                fail_msg("case %zu, %s: epoch %d is%s saved", i, text, e, due ? " not" : "");
            saved += due;
        }
        keel_history_free(&h);
        keel_callback_destroy(callback);
        keel_model_destroy(m);
    }
    json_decref(cases);
}

static double half_every_two(void *context, int64_t epoch, double rate)
{
    (void)context;
    (void)rate;
    return (double)(0.3F * powf(0.5F, (float)epoch / 2));
}

static void a_schedule_by_epochs_is_a_function_or_a_text(void **unused)
{
    (void)unused;
    const json_t *want = json_object_get(golden, "schedule");
    for (int lanes = 1; lanes <= LANES; lanes++)
        for (int k = 0; k < 2; k++) {
            keel_callback *c;
            keel_history h;
            keel_model *m = sgd(0.4);
            if (k)
                must(keel_callback_create_schedule(&c, half_every_two, NULL));
            else
                must(keel_callback_parse(&c,
                                         "LearningRateScheduler(ExponentialDecay(0.3, 2, 0.5))"));
            const keel_fit_options o = options(6, KEEL_CALLBACKS(c));
            must(keel_fit(m, strategy[lanes], rows, &o, &h));
            same_history(&h, json_object_get(want, "history"), "schedule");
            near_weights(m, json_object_get(want, "weights"), "schedule");
            keel_history_free(&h);
            keel_callback_destroy(c);
            keel_model_destroy(m);
        }
}

static keel_status look_at_weights(void *context, const keel_moment *at)
{
    near_weights(at->model, json_array_get(context, (size_t)at->epoch), "weights in epoch_end");
    return KEEL_OK;
}

static void averages_are_tested_and_saved_as_by_keras(void **unused)
{
    (void)unused;
    for (int lanes = 1; lanes <= LANES; lanes++)
        for (int on_epoch = 0; on_epoch < 2; on_epoch++) {
            const json_t *want = json_object_get(golden, on_epoch ? "ema_on_epoch" : "ema");
            keel_callback *c;
            keel_history h;
            keel_model *m = network("sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.2),
                                                     KEEL_ARG_FLOAT("momentum", 0.5),
                                                     KEEL_ARG_BOOL("use_ema", true),
                                                     KEEL_ARG_FLOAT("ema_momentum", 0.7)));
            must(keel_callback_create(&c, "SwapEMAWeights",
                                      KEEL_ARGS(KEEL_ARG_BOOL("swap_on_epoch", on_epoch))));
            const keel_callback look = { KEEL_CALLBACK, .context = json_object_get(want, "saved"),
                                         .on_epoch_end = on_epoch ? look_at_weights : NULL };
            const keel_fit_options o = options(4, KEEL_CALLBACKS(c, &look));
            must(keel_fit(m, strategy[lanes], rows, &o, &h));
            same_history(&h, json_object_get(want, "history"), "averages");
            near_weights(m, json_object_get(want, "weights"), "averages");
            keel_history_free(&h);
            keel_callback_destroy(c);
            keel_model_destroy(m);
        }
}

enum { LARGE = FEATURES * 40 + 40 + 40 * 40 + 40 + 40 + 1 };

static keel_status look_at_large_weights(void *context, const keel_moment *at)
{
    float(*seen)[LARGE] = context;
    assert_int_equal(weights_of(at->model, seen[at->epoch]), LARGE);
    return KEEL_OK;
}

/* One kernel has 40 x 40 numbers, more than are swapped at once. An epoch is a step, after which
 * the averages are 0.75 of what they were and 0.25 of the weights. */
static void large_weights_are_swapped_whole(void **unused)
{
    static float before[2][LARGE], after[2][LARGE], plain[2][LARGE];
    keel_callback *swap;
    (void)unused;
    for (int swapped = 0; swapped < 2; swapped++) {
        keel_model *m;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
        must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 40))));
        must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 40))));
        must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
        const keel_arg *args =
            KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.01), KEEL_ARG_BOOL("use_ema", true),
                      KEEL_ARG_FLOAT("ema_momentum", 0.75));
        must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd", args },
                                                    .loss = { { "mse" } } }));
        must(keel_callback_parse(&swap, "SwapEMAWeights(swap_on_epoch=true)"));
        const keel_callback first = { KEEL_CALLBACK, .context = swapped ? before : plain,
                                      .on_epoch_end = look_at_large_weights };
        const keel_callback last = { KEEL_CALLBACK, .context = after,
                                     .on_epoch_end = look_at_large_weights };
        keel_fit_options o =
            options(2, swapped ? KEEL_CALLBACKS(&first, swap, &last) : KEEL_CALLBACKS(&first));
        o.batch_size = ROWS;
        must(keel_fit(m, strategy[1], rows, &o, NULL));
        keel_callback_destroy(swap);
        keel_model_destroy(m);
    }
    assert_memory_equal(before, plain, sizeof plain); /* the next step has the weights again */
    assert_memory_equal(after[0], plain[0], sizeof plain[0]);
    for (int i = 0; i < LARGE; i++) {
        const double want = 0.75 * (double)plain[0][i] + 0.25 * (double)plain[1][i];
        if (!(fabs((double)after[1][i] - want) < 1e-6))
            fail_msg("number %d: %g, not %g", i, (double)after[1][i], want);
    }
}

typedef struct failing {
    int64_t epoch; /* fail in this one */
    bool fails;
    float trained[64]; /* the weights after the last step */
} failing;

static keel_status keep_trained(void *context, const keel_moment *at)
{
    weights_of(at->model, ((failing *)context)->trained);
    return KEEL_OK;
}

static keel_status fail_late(void *context, const keel_moment *at)
{
    const failing *f = context;
    return f->fails && at->epoch == f->epoch ? KEEL_EIO : KEEL_OK;
}

/* What fits on after the failure has the averages where they were, too. */
static void what_fails_while_averages_are_in_the_model_leaves_the_weights(void **unused)
{
    (void)unused;
    const keel_callback told[] = {
        { KEEL_CALLBACK, .on_train_batch_end = keep_trained, .on_test_begin = fail_late },
        { KEEL_CALLBACK, .on_train_batch_end = keep_trained, .on_test_batch_end = fail_late },
        { KEEL_CALLBACK, .on_train_batch_end = keep_trained, .on_test_end = fail_late },
        { KEEL_CALLBACK, .on_train_batch_end = keep_trained, .on_epoch_end = fail_late },
        { KEEL_CALLBACK, .on_train_batch_end = keep_trained, .on_epoch_begin = fail_late },
    };
    for (size_t k = 0; k < sizeof told / sizeof *told; k++)
        for (int on_epoch = 0; on_epoch < 2; on_epoch++) {
            failing f = { .epoch = 1, .fails = true };
            float after[64], again[64];
            keel_callback mine = told[k], *swap;
            keel_logs logs;
            keel_model *m = network("sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.2),
                                                     KEEL_ARG_BOOL("use_ema", true),
                                                     KEEL_ARG_FLOAT("ema_momentum", 0.7)));
            mine.context = &f;
            must(keel_callback_create(&swap, "SwapEMAWeights",
                                      KEEL_ARGS(KEEL_ARG_BOOL("swap_on_epoch", on_epoch))));
            const keel_fit_options o = options(3, KEEL_CALLBACKS(swap, &mine));
            assert_int_equal(keel_fit(m, strategy[2], rows, &o, NULL), KEEL_ECALLBACK);
            const int64_t n = weights_of(m, after);
            if (memcmp(after, f.trained, (size_t)n * sizeof *after))
                fail_msg("case %d: other weights than those that were trained", (int)k);

            f.epoch = 0; /* of evaluations, too, which fail in their tests only */
            const keel_status want =
                told[k].on_epoch_end || told[k].on_epoch_begin ? KEEL_OK : KEEL_ECALLBACK;
            assert_int_equal(keel_evaluate(m, strategy[2], tested, &o, &logs), want);
            weights_of(m, again);
            assert_memory_equal(after, again, (size_t)n * sizeof *after);
            f.fails = false;
            must(keel_evaluate(m, strategy[2], tested, &o, &logs));
            weights_of(m, again);
            assert_memory_equal(after, again, (size_t)n * sizeof *after);
            must(keel_fit(m, strategy[2], rows, &o, NULL));
            must(keel_evaluate(m, strategy[2], tested, &o, &logs));
            keel_callback_destroy(swap);
            keel_model_destroy(m);
        }
}

static void fit_with(const char *text, double rate, int64_t epochs, int64_t validation_freq)
{
    keel_callback *c;
    keel_model *m = sgd(rate);
    must(keel_callback_parse(&c, text));
    keel_fit_options o = options(epochs, KEEL_CALLBACKS(c));
    o.validation_freq = validation_freq;
    must(keel_fit(m, strategy[2], rows, &o, NULL));
    keel_callback_destroy(c);
    keel_model_destroy(m);
}

static void checkpoints_have_the_names_of_keras_and_the_weights_of_their_moment(void **unused)
{
    (void)unused;
    char text[600], path[400];
    struct stat st;
    size_t i;
    json_t *name;
    snprintf(text, sizeof text,
             "ModelCheckpoint('%s/new/best-{epoch:02d}-{val_loss:.2f}.keras', save_best_only=True)",
             folder);
    fit_with(text, 0.4, 8, 1);
    snprintf(text, sizeof text,
             "ModelCheckpoint('%s/new/step-{epoch}-{batch:03d}.weights.h5', save_freq=5, "
             "save_weights_only=True)",
             folder);
    fit_with(text, 0.4, 4, 1);
    json_array_foreach(json_object_get(golden, "files"), i, name)
    {
        snprintf(path, sizeof path, "%s/new/%s", folder, json_string_value(name));
        if (stat(path, &st)) fail_msg("%s is missing", path);
    }
    snprintf(path, sizeof path, "%s/new/best-05-2.41.keras", folder);
    assert_int_not_equal(stat(path, &st), 0);
    /* after one epoch of the same training */
    keel_model *m = sgd(0.4), *saved;
    float a[64], b[64];
    keel_fit_options o = options(1, NULL);
    must(keel_fit(m, strategy[2], rows, &o, NULL));
    snprintf(path, sizeof path, "%s/new/best-01-2.63.keras", folder);
    must(keel_model_load(&saved, path));
    const int64_t n = weights_of(m, a);
    assert_int_equal(weights_of(saved, b), n);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    keel_model_destroy(saved);
    keel_model_destroy(m);
    m = sgd(0.4);
    snprintf(path, sizeof path, "%s/new/step-2-002.weights.h5", folder);
    must(keel_model_load_weights(m, path));
    assert_int_equal(weights_of(m, b), n);
    assert_memory_not_equal(a, b, (size_t)n * sizeof *a);
    keel_model_destroy(m);
}

/* The texts agree except for the digits of the numbers. */
static void same_csv(const char *path, const char *want)
{
    char got[2000] = "";
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    got[fread(got, 1, sizeof got - 1, f)] = 0;
    fclose(f);
    for (const char *a = got, *b = want; *a || *b;) {
        char *a_end, *b_end;
        const double u = strtod(a, &a_end), v = strtod(b, &b_end);
        if (a_end != a && b_end != b && golden_near(u, v, 2e-5)) {
            a = a_end;
            b = b_end;
        } else if (*a == *b) {
            a++;
            b++;
        } else {
            fail_msg("the file has '%.40s', Keras's '%.40s'", a, b);
        }
    }
}

static void the_csv_logger_writes_the_file_of_keras(void **unused)
{
    (void)unused;
    char text[500], path[400];
    snprintf(path, sizeof path, "%s/log.csv", folder);
    snprintf(text, sizeof text, "CSVLogger(%s)", path);
    keel_callback *c;
    keel_model *m = sgd(0.1);
    must(keel_callback_parse(&c, text));
    keel_fit_options o = options(3, KEEL_CALLBACKS(c));
    o.validation_freq = 2;
    must(keel_fit(m, strategy[3], rows, &o, NULL));
    same_csv(path, golden_text(golden, "csv"));
    keel_callback_destroy(c);
    snprintf(text, sizeof text, "CSVLogger('%s', separator=';', append=True)", path);
    must(keel_callback_parse(&c, text));
    o = options(1, KEEL_CALLBACKS(c));
    must(keel_fit(m, strategy[3], rows, &o, NULL));
    same_csv(path, golden_text(golden, "csv_appended"));
    keel_callback_destroy(c);
    keel_model_destroy(m);
}

static void the_csv_logger_writes_into_a_pipe(void **unused)
{
    (void)unused;
    for (int appends = 0; appends < 2; appends++) {
        char text[500], path[400], got[4096];
        keel_callback *c;
        keel_model *m = sgd(0.1);
        snprintf(path, sizeof path, "%s/log.pipe", folder);
        assert_int_equal(mkfifo(path, 0600), 0);
        const int reader = open(path, O_RDONLY | O_NONBLOCK);
        assert_true(reader >= 0);
        snprintf(text, sizeof text, "CSVLogger('%s', append=%s)", path, appends ? "True" : "False");
        must(keel_callback_parse(&c, text));
        keel_fit_options o = options(3, KEEL_CALLBACKS(c));
        o.validation_freq = 2;
        must(keel_fit(m, strategy[3], rows, &o, NULL));
        const ssize_t n = read(reader, got, sizeof got);
        assert_true(n > 0);
        close(reader);
        remove(path);
        FILE *f = fopen(path, "w");
        assert_true(f && fwrite(got, 1, (size_t)n, f) == (size_t)n && !fclose(f));
        same_csv(path, golden_text(golden, "csv"));
        remove(path);
        keel_callback_destroy(c);
        keel_model_destroy(m);
    }
}

static void a_history_is_a_table_with_its_names_quoted(void **unused)
{
    (void)unused;
    char name[3][16] = { "loss", "a,b", "the \"best\"" };
    double value[] = { 0.5, 0.1, NAN, 1.0 / 3, -2, 1e-30 };
    const keel_history h = { .epochs = 2,
                             .initial_epoch = 7,
                             .count = 3,
                             .name = { name[0], name[1], name[2] },
                             .value = value };
    char path[256], text[256];
    snprintf(path, sizeof path, "%s/history.csv", folder);
    must(keel_history_save(&h, path));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    assert_string_equal(text, "epoch,loss,\"a,b\",\"the \"\"best\"\"\"\n"
                              "7,0.5,0.1,nan\n8,0.333333333,-2,1e-30\n");
    assert_int_equal(keel_history_save(&h, "/nowhere/h.csv"), KEEL_EIO);
}

static void the_csv_logger_writes_over_no_table_of_data(void **unused)
{
    static const char *const table[] = { "a,b\n1,2\n", "epochs,b\n1,2\n", "\n" };
    (void)unused;
    char text[500], path[400];
    snprintf(path, sizeof path, "%s/data.csv", folder);
    keel_model *m = sgd(0.1);
    for (int i = 0; i < 6; i++) {
        FILE *f = fopen(path, "w");
        keel_callback *c;
        assert_true(f && fputs(table[i / 2], f) >= 0 && !fclose(f));
        snprintf(text, sizeof text, "CSVLogger('%s', append=%s)", path, i % 2 ? "True" : "False");
        must(keel_callback_parse(&c, text));
        const keel_fit_options o = options(1, KEEL_CALLBACKS(c));
        assert_int_equal(keel_fit(m, strategy[2], rows, &o, NULL), KEEL_ECALLBACK);
        assert_non_null(strstr(keel_error(), "data.csv is a file that no CSVLogger has written"));
        same_csv(path, table[i / 2]);
        keel_callback_destroy(c);
    }
    keel_model_destroy(m);
    remove(path);
}

/* The file of TensorBoard in a folder: *out [*n], to free. */
static unsigned char *events_in(const char *path, size_t *n)
{
    DIR *d = opendir(path);
    unsigned char *data = calloc(1, 1 << 20);
    assert_non_null(d);
    *n = 0;
    for (const struct dirent *e; (e = readdir(d));) {
        char file[800];
        if (strncmp(e->d_name, "events.out.tfevents.", 20)) continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        FILE *f = fopen(file, "rb");
        assert_non_null(f);
        *n += fread(data + *n, 1, (1 << 20) - *n, f);
        fclose(f);
    }
    closedir(d);
    return data;
}

static bool has(const unsigned char *data, size_t n, const char *text)
{
    return memmem(data, n, text, strlen(text)) != NULL;
}

/* tests/interop/tensorboard_reads.py asks the real TensorBoard. */
static void tensorboard_files_have_a_record_for_each_value(void **unused)
{
    (void)unused;
    char text[500], path[450];
    keel_callback *c;
    keel_model *m = sgd(0.1);
    size_t n, at = 0;
    int records = 0;
    snprintf(text, sizeof text, "TensorBoard(log_dir='%s/tb', histogram_freq=2, update_freq=batch)",
             folder);
    must(keel_callback_parse(&c, text));
    const keel_fit_options o = options(3, KEEL_CALLBACKS(c));
    must(keel_fit(m, strategy[2], rows, &o, NULL));
    snprintf(path, sizeof path, "%s/tb/train", folder);
    unsigned char *data = events_in(path, &n);
    while (at < n) {
        uint64_t size;
        assert_true(at + 16 <= n);
        memcpy(&size, data + at, 8);
        assert_true(size <= n - at - 16);
        at += 16 + size;
        records++;
    }
    /* version, graph, 3 epochs and 9 steps of 2 logs, 4 weights in epochs 0 and 2 */
    assert_int_equal(records, 1 + 1 + 3 * 2 + 9 * 2 + 2 * 4);
    assert_true(has(data, n, "epoch_loss") && has(data, n, "batch_mae"));
    assert_true(has(data, n, "/kernel/histogram") && has(data, n, "Dense"));
    free(data);
    snprintf(path, sizeof path, "%s/tb/validation", folder);
    data = events_in(path, &n);
    assert_true(has(data, n, "epoch_loss") && has(data, n, "evaluation_mae_vs_iterations"));
    free(data);
    keel_callback_destroy(c);
    keel_model_destroy(m);
}

/* Field `number` of a message of a protocol buffer: its bytes, or NULL; *n: how many, or the whole
 * number that it is. The message must be whole. */
static const unsigned char *proto(const unsigned char *p, uint64_t n, int number, uint64_t *size)
{
    const unsigned char *const end = p + n, *found = NULL;
    while (p < end) {
        uint64_t v[2] = { 0 };
        for (int k = 0; k < 2; k++) {
            if (k && (v[0] & 7) != 0 && (v[0] & 7) != 2) {
                v[1] = (v[0] & 7) == 1 ? 8 : 4;
                continue;
            }
            for (int shift = 0; p < end; shift += 7) {
                v[k] |= (uint64_t)(*p & 127) << shift;
                if (!(*p++ & 128)) break;
            }
        }
        const uint64_t skip = (v[0] & 7) ? v[1] : 0;
        assert_true(skip <= (uint64_t)(end - p));
        if (v[0] >> 3 == (uint64_t)number && !found) {
            found = p;
            *size = v[1];
        }
        p += skip;
    }
    return found;
}

/* Numbers of fields are those of event.proto, summary.proto and tensor.proto; the reader of
 * TFRecord looks at checksums. */
static void tensorboard_has_the_values_of_the_history(void **unused)
{
    (void)unused;
    char text[600], path[500], file[800] = "";
    keel_callback *c;
    keel_history h;
    keel_tfrecord t;
    keel_scratch scratch = { 0 };
    keel_model *m = sgd(0.1);
    int found = 0;
    snprintf(path, sizeof path, "%s/values", folder);
    snprintf(text, sizeof text, "TensorBoard(log_dir='%s')", path);
    must(keel_callback_parse(&c, text));
    const keel_fit_options o = options(3, KEEL_CALLBACKS(c));
    must(keel_fit(m, strategy[2], rows, &o, &h));
    keel_callback_destroy(c);
    strcat(path, "/train");
    DIR *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') snprintf(file, sizeof file, "%s/%s", path, e->d_name);
    closedir(d);
    must(keel_tfrecord_open(&t, file, true, NULL));
    for (int64_t i = 0; i < t.count; i++) {
        const unsigned char *data, *sum, *value, *tag, *tensor, *content;
        size_t n;
        uint64_t size, step = 0, n_tag, type = 0;
        double time;
        must(keel_tfrecord_read(&t, i, &scratch, &data, &n));
        assert_non_null(sum = proto(data, n, 1, &size));
        memcpy(&time, sum, 8);
        assert_true(time > 1.6e9);
        proto(data, n, 2, &step);
        if (!(sum = proto(data, n, 5, &size))) continue;
        assert_non_null(value = proto(sum, size, 1, &size));
        assert_non_null(tag = proto(value, size, 1, &n_tag));
        assert_non_null(tensor = proto(value, size, 8, &size));
        proto(tensor, size, 1, &type);
        assert_int_equal(type, 1); /* DT_FLOAT */
        assert_non_null(content = proto(tensor, size, 4, &size));
        assert_int_equal(size, sizeof(float));
        float got;
        memcpy(&got, content, sizeof got);
        for (int k = 0; k < h.count; k++) {
            snprintf(text, sizeof text, "epoch_%s", h.name[k]);
            if (n_tag != strlen(text) || memcmp(tag, text, n_tag)) continue;
            assert_true(step < 3 && got == (float)h.value[(int64_t)step * h.count + k]);
            found++;
        }
    }
    assert_int_equal(found, 3 * 2); /* loss and mae; val_ is in another file */
    keel_scratch_free(&scratch);
    keel_tfrecord_close(&t);
    keel_history_free(&h);
    keel_model_destroy(m);
}

/* ---- the live model -------------------------------------------------------------------------- */

typedef struct life {
    float before[64], after[64];
    int64_t n;
    const char *path;
    int calls;
} life;

static keel_status save_and_change(void *context, const keel_moment *at)
{
    life *l = context;
    double rate;
    if (at->epoch != 0 || at->step != 2) return KEEL_OK;
    l->calls++;
    l->n = weights_of(at->model, l->before);
    must(keel_model_save(at->model, l->path));
    must(keel_model_learning_rate(at->model, &rate));
    assert_true(fabs(rate - 0.1) < 1e-7);
    must(keel_model_set_learning_rate(at->model, 0));
    keel_tensor t;
    const char *name = keel_model_weight_name(at->model, 0);
    must(keel_model_get_weight(at->model, name, &t));
    for (int i = 0; i < 12; i++) ((float *)t.data)[i] = (float)i;
    must(keel_model_set_weight(at->model, name, &t));
    keel_tensor_free(&t);
    weights_of(at->model, l->after);
    return KEEL_OK;
}

static void the_model_is_that_of_the_last_step_and_what_is_set_holds(void **unused)
{
    (void)unused;
    char path[400];
    snprintf(path, sizeof path, "%s/live.keras", folder);
    const char *const optimizers[] = { "sgd", "adam", "lamb", "muon", "rmsprop" };
    for (size_t k = 0; k < sizeof optimizers / sizeof *optimizers; k++)
        for (int lanes = 1; lanes <= LANES; lanes++) {
            life l = { .path = path };
            float end[64], initial[64], saved[64];
            keel_model *m = network(optimizers[k], KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.1)));
            keel_model *file;
            const keel_callback c = { KEEL_CALLBACK, .context = &l,
                                      .on_train_batch_end = save_and_change };
            const keel_fit_options o = options(2, KEEL_CALLBACKS(&c));
            weights_of(m, initial);
            must(keel_fit(m, strategy[lanes], rows, &o, NULL));
            assert_int_equal(l.calls, 1);
            assert_memory_not_equal(l.before, initial, (size_t)l.n * sizeof *initial);
            must(keel_model_load(&file, path));
            weights_of(file, saved);
            assert_memory_equal(saved, l.before, (size_t)l.n * sizeof *saved);
            weights_of(m, end); /* with a rate of 0, what was set has stayed */
            if (memcmp(end, l.after, (size_t)l.n * sizeof *end))
                fail_msg("%s on %d devices: the weights that were set have moved", optimizers[k],
                         lanes);
            keel_model_destroy(file);
            keel_model_destroy(m);
        }
}

static keel_status set_others(void *context, const keel_moment *at)
{
    const keel_model *other = context;
    keel_tensor t;
    for (int i = 0; at->step == 0 && at->epoch == 1 && i < keel_model_weight_count(other); i++) {
        must(keel_model_get_weight(other, keel_model_weight_name(other, i), &t));
        must(keel_model_set_weight(at->model, keel_model_weight_name(at->model, i), &t));
        keel_tensor_free(&t);
    }
    return KEEL_OK;
}

static void a_step_after_weights_were_set_is_that_of_a_model_with_them(void **unused)
{
    (void)unused;
    for (int lanes = 1; lanes <= LANES; lanes++) {
        float a[64], b[64];
        keel_model *other = sgd(0.1), *fresh = sgd(0.1), *m = sgd(0.1);
        keel_fit_options o = options(3, NULL);
        must(keel_fit(other, strategy[1], rows, &o, NULL));
        const keel_callback c = { KEEL_CALLBACK, .context = other,
                                  .on_train_batch_begin = set_others };
        o = options(2, KEEL_CALLBACKS(&c));
        must(keel_fit(m, strategy[lanes], rows, &o, NULL));
        const keel_callback begin = { KEEL_CALLBACK, .context = other,
                                      .on_train_batch_begin = set_others };
        o = options(2, KEEL_CALLBACKS(&begin));
        o.initial_epoch = 1;
        must(keel_fit(fresh, strategy[lanes], rows, &o, NULL));
        const int64_t n = weights_of(m, a);
        weights_of(fresh, b);
        assert_memory_equal(a, b, (size_t)n * sizeof *a);
        keel_model_destroy(other);
        keel_model_destroy(fresh);
        keel_model_destroy(m);
    }
}

static keel_model *images(void)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 16, 16, 8))));
    must(keel_model_add(m, "Conv2D",
                        KEEL_ARGS(KEEL_ARG_INT("filters", 32), KEEL_ARG_INT("kernel_size", 3))));
    must(keel_model_add(m, "BatchNormalization", NULL));
    must(keel_model_add(m, "Flatten", NULL));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 64))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(
        m,
        &(keel_compile){ KEEL_COMPILE,
                         .optimizer = { "sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 1e-3)) },
                         .loss = { { "mse" } } }));
    return m;
}

/* Kernels keep packed copies of such weights. */
static void packed_copies_of_weights_follow_what_is_set(void **unused)
{
    (void)unused;
    enum { N = 12, SIZE = 16 * 16 * 8 };
    static float in[N * SIZE], out[N];
    for (int i = 0; i < N * SIZE; i++) in[i] = sinf((float)i * 0.37F);
    for (int i = 0; i < N; i++) out[i] = (float)(i % 3);
    keel_dataset *d;
    const keel_tensor tx = { KEEL_FLOAT32, { 4, { N, 16, 16, 8 } }, in };
    const keel_tensor ty = { KEEL_FLOAT32, { 2, { N, 1 } }, out };
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    for (int lanes = 1; lanes <= LANES; lanes++) {
        keel_model *other = images(), *fresh = images(), *m = images();
        keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = 1,
                               .validation = d };
        keel_history a, b;
        must(keel_fit(other, strategy[lanes], d, &o, NULL));
        const keel_callback c = { KEEL_CALLBACK, .context = other,
                                  .on_train_batch_begin = set_others };
        o.callbacks = KEEL_CALLBACKS(&c);
        o.epochs = 2;
        must(keel_fit(m, strategy[lanes], d, &o, &a));
        for (int i = 0; i < keel_model_weight_count(other); i++) {
            keel_tensor t;
            const char *name = keel_model_weight_name(other, i);
            must(keel_model_get_weight(other, name, &t));
            must(keel_model_set_weight(fresh, keel_model_weight_name(fresh, i), &t));
            keel_tensor_free(&t);
        }
        o.callbacks = NULL;
        o.initial_epoch = 1;
        must(keel_fit(fresh, strategy[lanes], d, &o, &b));
        assert_memory_equal(a.value + a.count, b.value, (size_t)a.count * sizeof *b.value);
        keel_history_free(&a);
        keel_history_free(&b);
        keel_model_destroy(other);
        keel_model_destroy(fresh);
        keel_model_destroy(m);
    }
    keel_dataset_destroy(d);
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static keel_status forbidden(void *context, const keel_moment *at)
{
    keel_model *m = at->model, *outer;
    keel_history h;
    keel_logs logs;
    keel_tensor t;
    keel_plan p;
    (void)context;
    assert_int_equal(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" },
                                                            .loss = { { "mse" } } }),
                     KEEL_EARG);
    assert_non_null(strstr(keel_error(), "in use"));
    assert_int_equal(
        keel_model_recompile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" } }),
        KEEL_EARG);
    assert_int_equal(keel_model_add(m, "Flatten", NULL), KEEL_EARG);
    assert_int_equal(keel_model_set_trainable(m, NULL, false), KEEL_EARG);
    assert_int_equal(keel_model_set_dtype(m, KEEL_FLOAT64), KEEL_EARG);
    assert_int_equal(keel_model_set_dtype_policy(m, "mixed_bfloat16"), KEEL_EARG);
    assert_int_equal(keel_fit(m, strategy[1], rows, NULL, &h), KEEL_EARG);
    assert_int_equal(keel_evaluate(m, strategy[1], rows, NULL, &logs), KEEL_EARG);
    assert_int_equal(keel_predict(m, strategy[1], rows, NULL, &t), KEEL_EARG);
    assert_int_equal(keel_plan_make(&p, m, strategy[1], 10, BATCH, KEEL_KEEP, NULL), KEEL_EARG);
    must(keel_model_create(&outer, NULL, KEEL_FLOAT32, 1));
    keel_symbol in, out;
    must(keel_model_input(outer, KEEL_DIMS(FEATURES), NULL, &in));
    assert_int_equal(keel_model_call_model(outer, m, NULL, &in, 1, &out), KEEL_EARG);
    keel_model_destroy(outer);
    return KEEL_OK;
}

static keel_status destroy(void *context, const keel_moment *at)
{
    (void)context;
    keel_model_destroy(at->model);
    return KEEL_OK;
}

static keel_status fails(void *context, const keel_moment *at)
{
    (void)context;
    (void)at;
    return KEEL_EIO;
}

static keel_status means_nothing(void *context, const keel_moment *at)
{
    (void)context;
    (void)at;
    return (keel_status)2;
}

static keel_status lacks_memory(void *context, const keel_moment *at)
{
    (void)context;
    (void)at;
    return KEEL_ENOMEM;
}

static keel_status fail_with_a_text(void *context, const keel_moment *at)
{
    (void)context;
    return keel_model_save(at->model, "/nowhere/m.keras");
}

static keel_status add_a_log(void *context, const keel_moment *at)
{
    (void)context;
    return keel_logs_set(at->logs, "mine", 1);
}

static keel_status name_a_log(void *context, const keel_moment *at)
{
    (void)context;
    return keel_logs_set(at->logs, "val_mine", NAN);
}

/* As in Keras, where the dict that on_test_end gets becomes that of the epoch. */
static void a_log_that_a_callback_adds_to_a_validation_is_one_of_the_epoch(void **unused)
{
    (void)unused;
    const keel_callback c = { KEEL_CALLBACK, .on_train_begin = name_a_log,
                              .on_test_end = add_a_log };
    keel_model *m = sgd(0.1);
    keel_history h;
    keel_logs logs;
    const keel_fit_options o = options(2, KEEL_CALLBACKS(&c));
    must(keel_fit(m, strategy[2], rows, &o, &h));
    assert_string_equal(h.name[h.count - 1], "val_mine");
    assert_true(h.value[2 * h.count - 1] == 1);
    must(keel_evaluate(m, strategy[2], rows, &o, &logs));
    assert_true(keel_logs_get(&logs, "mine") == 1);
    keel_history_free(&h);
    keel_model_destroy(m);
}

static void what_a_callback_may_not_do_is_an_error(void **unused)
{
    (void)unused;
    const struct {
        const char *what, *text;
        keel_callback c;
    } cases[] = {
        { "the model is destroyed",
          "destroyed the model",
          { KEEL_CALLBACK, .on_train_batch_end = destroy } },
        { "it fails without a text",
          "the callback of the caller failed in on_epoch_begin",
          { KEEL_CALLBACK, .on_epoch_begin = fails } },
        { "it has no memory, and says so by its status alone",
          "the callback mine failed in on_epoch_end",
          { KEEL_CALLBACK, .name = "mine", .on_epoch_end = lacks_memory } },
        { "it returns what is no status",
          "the callback mine returned 2 in on_epoch_end",
          { KEEL_CALLBACK, .name = "mine", .on_epoch_end = means_nothing } },
        { "it fails with one",
          "/nowhere",
          { KEEL_CALLBACK, .name = "mine", .on_test_end = fail_with_a_text } },
        { "a log that was not named", "'mine'", { KEEL_CALLBACK, .on_epoch_end = add_a_log } },
        { "a log of a validation that was not named",
          "'val_mine'",
          { KEEL_CALLBACK, .on_test_end = add_a_log } },
    };
    for (int lanes = 1; lanes <= LANES; lanes++) {
        keel_model *m = sgd(0.1);
        const keel_callback c = { KEEL_CALLBACK, .on_train_batch_begin = forbidden };
        keel_fit_options o = options(1, KEEL_CALLBACKS(&c));
        must(keel_fit(m, strategy[lanes], rows, &o, NULL));
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            o = options(2, KEEL_CALLBACKS(&cases[i].c));
            if (keel_fit(m, strategy[lanes], rows, &o, NULL) != KEEL_ECALLBACK)
                fail_msg("%s: no error", cases[i].what);
            if (!strstr(keel_error(), cases[i].text))
                fail_msg("%s: %s", cases[i].what, keel_error());
        }
        keel_model_destroy(m);
    }
}

static void names_are_made_as_by_python(void **unused)
{
    (void)unused;
    static const struct {
        const char *pattern;
        double loss;
        const char *want; /* pattern.format(epoch=3, loss=loss); NULL: an error, there too */
    } cases[] = {
        { "e{epoch}", 0, "e3" },
        { "{epoch:02d}-{epoch:5}", 0, "03-    3" },
        { "{epoch:.2f}", 0, "3.00" },
        { "{epoch:.2d}", 0, NULL },
        { "{loss:d}", 0, NULL },
        { "{{{epoch}}}", 0, "{3}" },
        { "a}b", 0, NULL },
        { "{loss", 0, NULL },
        { "{loss}", 0.123456789, "0.123456789" },
        { "{loss}", 1e-5, "1e-05" },
        { "{loss}", -2.5e-300, "-2.5e-300" },
        { "{loss}", 0.0001, "0.0001" },
        { "{loss}", 1e15, "1000000000000000.0" },
        { "{loss}", 123456789012345680.0, "1.2345678901234568e+17" },
        { "{loss}", -INFINITY, "-inf" },
        { "{loss:.0f}", -1.5, "-2" },
        { "{loss:06.2f}", -1.5, "-01.50" },
        { "{loss:12.3e}", -1.5, "  -1.500e+00" },
        { "{loss:G}", 1e-5, "1E-05" },
        { "{loss:.f}", 1.5, NULL },
        { "{loss:.2f}", NAN, "nan" },
        { "{loss:.2f}", -NAN, "nan" }, /* that of x86 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_logs logs = { 1, { "loss" }, { cases[i].loss } };
        keel_text t = { 0 };
        const keel_status s = keel_python_format(&t, cases[i].pattern, 3, 0, &logs);
        if ((s < 0) != !cases[i].want || (s >= 0 && strcmp(t.data, cases[i].want) != 0))
            fail_msg("%s of %g: '%s'", cases[i].pattern, cases[i].loss, s < 0 ? "" : t.data);
        keel_text_free(&t);
    }
}

static void metrics_say_whether_more_of_them_is_better(void **unused)
{
    (void)unused;
    static const struct {
        const char *monitor;
        int mode; /* KEEL_MONITOR_AUTO: it is not known */
    } cases[] = {
        { "loss", KEEL_MONITOR_MIN },
        { "val_loss", KEEL_MONITOR_MIN },
        { "val_dense_loss", KEEL_MONITOR_MIN },
        { "mae", KEEL_MONITOR_MIN },
        { "val_mae", KEEL_MONITOR_MIN },
        { "val_accuracy", KEEL_MONITOR_MAX },
        { "acc", KEEL_MONITOR_MAX },
        { "val_ce", KEEL_MONITOR_MIN },
        { "crossentropy", KEEL_MONITOR_MIN },
        { "CosineSimilarity", KEEL_MONITOR_MAX },
        { "val_MeanSquaredError", KEEL_MONITOR_MIN },
        { "F1Score[0]", KEEL_MONITOR_MAX },
        { "TruePositives", KEEL_MONITOR_AUTO },
        { "val_lapse", KEEL_MONITOR_AUTO },
    };
    keel_model *m = sgd(0.1);
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" },
                                                .loss = { { "mse" } },
                                                .metrics = { { "mae" },
                                                             { "accuracy" },
                                                             { "CosineSimilarity" },
                                                             { "MeanSquaredError" },
                                                             { "F1Score" },
                                                             { "TruePositives" },
                                                             { "acc" },
                                                             { "ce" },
                                                             { "crossentropy" } } }));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_logs logs = { 1, { cases[i].monitor }, { NAN } };
        const keel_moment at = { .model = m, .logs = &logs };
        keel_monitor watch = { .monitor = (char *)cases[i].monitor };
        int mode = KEEL_MONITOR_AUTO;
        const keel_status s = keel_monitor_begin(&watch, &at, &mode);
        if ((s < 0) != !cases[i].mode || mode != cases[i].mode)
            fail_msg("%s: mode %d: %s", cases[i].monitor, mode, s < 0 ? keel_error() : "");
        if (s < 0) assert_non_null(strstr(keel_error(), "give mode min or max"));
        watch.mode = KEEL_MONITOR_MAX;
        must(keel_monitor_begin(&watch, &at, &mode));
        assert_int_equal(mode, KEEL_MONITOR_MAX);
    }
    keel_model_destroy(m);
}

static void wrong_callbacks_are_refused_before_the_first_step(void **unused)
{
    (void)unused;
    const struct {
        const char *call, *text;
        keel_status made;
    } cases[] = {
        { "Nothing()", "there is no callback 'Nothing'; there are BackupAndRestore, ", KEEL_EARG },
        { "EarlyStopping(patiense=3)", "patiense", KEEL_EARG },
        { "EarlyStopping(monitor=loss, 3)", "without a name come first", KEEL_EARG },
        { "EarlyStopping(patience=-1)", "patience", KEEL_EARG },
        { "EarlyStopping(patience=3", "no )", KEEL_EARG },
        { "ReduceLROnPlateau(factor=1)", "below 1", KEEL_EARG },
        { "ModelCheckpoint(m.h5)", "must end in .keras", KEEL_EARG },
        { "ModelCheckpoint(m.keras, save_weights_only=True)", "must end in .weights.h5",
          KEEL_EARG },
        { "ModelCheckpoint(m.keras, save_freq=0)", "save_freq", KEEL_EARG },
        { "CSVLogger(log.csv, separator=ab)", "one letter", KEEL_EARG },
        { "RemoteMonitor()", "opens no connections", KEEL_EUNSUP },
        { "History", "every fit has one", KEEL_EUNSUP },
        { "EarlyStopping(monitor=val_accuracy)", "they have loss, mae, val_loss", KEEL_OK },
        { "ModelCheckpoint('{epoch:x}.keras')", "not a format", KEEL_OK },
        { "ModelCheckpoint('{val_loss:10}.keras')", "not a format", KEEL_OK },
        { "ModelCheckpoint('{acc:.2f}.keras')", "{acc}", KEEL_OK },
        { "ModelCheckpoint('{val_loss}.keras', save_freq=2)", "{val_loss}", KEEL_OK },
        { "ModelCheckpoint('{epoch.keras')", "without its }", KEEL_OK },
        { "ModelCheckpoint(m.keras, save_best_only=True, save_freq=2)", "save_freq epoch",
          KEEL_OK },
        { "ModelCheckpoint(/dev/null/m.keras)", "/dev/null", KEEL_OK },
        { "ModelCheckpoint('/dev/null/{epoch}.keras')", "/dev/null", KEEL_OK },
        { "CSVLogger(/nowhere/log.csv)", "/nowhere/log.csv", KEEL_OK },
        { "LearningRateScheduler()", "give a schedule", KEEL_OK },
        { "SwapEMAWeights()", "use_ema", KEEL_OK },
        { "TensorBoard(write_images=True)", "it writes numbers and histograms of weights",
          KEEL_EUNSUP },
        { "TensorBoard(update_freq=often)", "update_freq", KEEL_EARG },
        { "TensorBoard(/dev/null)", "/dev/null", KEEL_OK },
        { "TensorBoard(write_inputs=1)", "no image", KEEL_OK },
    };
    keel_model *m = sgd(0.1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_callback *c = NULL;
        keel_history h;
        keel_status s = keel_callback_parse(&c, cases[i].call);
        assert_int_equal(s, cases[i].made);
        if (s >= 0) {
            const keel_fit_options o = options(1, KEEL_CALLBACKS(c));
            s = keel_fit(m, strategy[2], rows, &o, &h);
            assert_int_equal(s, KEEL_ECALLBACK);
            assert_int_equal(h.steps, 0);
            keel_history_free(&h);
        }
        if (!strstr(keel_error(), cases[i].text)) fail_msg("%s: %s", cases[i].call, keel_error());
        keel_callback_destroy(c);
    }
    keel_model_destroy(m);
}

/* ---- a validation that fails ------------------------------------------------------------------
 */

/* Two classes of six images each, in the folder `name`. */
static void write_images(const char *name)
{
    unsigned char pixel[8 * 8 * 3];
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mkdir(path, 0777); /* may be there; fopen tells */
    for (int i = 0; i < 12; i++) {
        void *file;
        size_t n;
        for (size_t k = 0; k < sizeof pixel; k++)
            pixel[k] = (unsigned char)((k * 37 + (size_t)i * 11) % 251);
        must(keel_png_write(&file, &n, pixel, 8, 8, 3));
        snprintf(path, sizeof path, "%s/%s/%d", folder, name, i / 6);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/%s/%d/%d.png", folder, name, i / 6, i);
        FILE *f = fopen(path, "wb");
        assert_true(f && fwrite(file, 1, n, f) == n && fclose(f) == 0);
        keel_free(file);
    }
}

static void wrong_rows_of_the_validation_end_only_it_where_asked(void **unused)
{
    (void)unused;
    char path[500];
    keel_dataset *d;
    write_images("set");
    write_images("bad");
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 8, 8, 3))));
    must(keel_model_add(m, "Flatten", NULL));
    must(keel_model_add(
        m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 16), KEEL_ARG_STR("activation", "softmax"))));
    must(keel_model_compile(m,
                            &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" },
                                             .loss = { { "sparse_categorical_crossentropy" } } }));
    keel_dataset_options io = KEEL_DATASET_OPTIONS;
    io.height = io.width = 8;
    snprintf(path, sizeof path, "%s/set", folder);
    must(keel_dataset_from_image_directory(&d, path, &io));
    keel_dataset *bad;
    snprintf(path, sizeof path, "%s/bad", folder);
    must(keel_dataset_from_image_directory(&bad, path, &io));
    /* cut an image short after it was opened */
    assert_int_equal(truncate(keel_dataset_row_name(bad, 3), 60), 0);
    for (int warns = 0; warns < 2; warns++) {
        keel_history h;
        const keel_fit_options o = { KEEL_FIT_OPTIONS, .epochs = 3, .batch_size = BATCH,
                                     .validation = bad, .validation_warns = warns };
        const keel_status s = keel_fit(m, strategy[2], d, &o, &h);
        if (warns) {
            must(s);
            assert_int_equal(h.epochs, 3);
            assert_true(isnan(h.value[1]) && !isnan(h.value[0]));
            assert_non_null(strstr(h.note, "epoch 1 has no validation: validation data: "));
        } else {
            assert_true(s < 0);
            assert_non_null(strstr(keel_error(), "validation data: "));
        }
        keel_history_free(&h);
    }
    keel_dataset_destroy(d);
    keel_dataset_destroy(bad);
    keel_model_destroy(m);
}

static void a_value_that_is_not_a_number_is_a_value_as_in_keras(void **unused)
{
    (void)unused;
    static const struct {
        const char *call;
        int64_t epochs;
        double rate; /* after the last */
    } cases[] = {
        { "EarlyStopping(patience=1)", 2, 0.1 },
        { "EarlyStopping(patience=3)", 4, 0.1 },
        { "ReduceLROnPlateau(patience=1)", 5, 0.1 * 1e-3 }, /* in the log before the fourth time */
    };
    float nan[TESTED * FEATURES];
    memcpy(nan, vx, sizeof nan);
    nan[5] = NAN;
    keel_dataset *bad = arrays(TESTED, nan, vy);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        keel_callback *c;
        keel_history h;
        keel_model *m = sgd(0.1);
        must(keel_callback_parse(&c, cases[k].call));
        keel_fit_options o = options(5, KEEL_CALLBACKS(c));
        o.validation = bad;
        must(keel_fit(m, strategy[2], rows, &o, &h));
        assert_int_equal(h.epochs, cases[k].epochs);
        for (int i = 0; i < h.count; i++)
            if (!strcmp(h.name[i], "learning_rate"))
                assert_float_equal(h.value[(h.epochs - 1) * h.count + i], cases[k].rate, 1e-9);
        keel_history_free(&h);
        keel_callback_destroy(c);
        keel_model_destroy(m);
    }
    keel_dataset_destroy(bad);
}

static void balanced_weights_are_those_of_scikit_learn(void **unused)
{
    (void)unused;
    float in[10 * FEATURES] = { 0 }, labels[10] = { 0, 0, 0, 0, 0, 0, 1, 1, 1, 3 };
    double w[4];
    keel_dataset *d = arrays(10, in, labels);
    must(keel_dataset_balanced_weights(d, w, 4));
    const double want[] = { 10 / (4 * 6.0), 10 / (4 * 3.0), 1, 10 / (4 * 1.0) };
    for (int i = 0; i < 4; i++) assert_true(fabs(w[i] - want[i]) < 1e-15);
    float shares[4][3] = { { 1, 0, 0 }, { 0.5f, 0.5f, 0 }, { 0, 0, 1 }, { 0, 0.25f, 0.75f } };
    const double of_shares[] = { 4 / (3 * 2.0), 1,
                                 4 / (3 * 2.0) }; /* of two equal ones the first */
    const keel_tensor tx = { KEEL_FLOAT32, { 1, { 4 } }, in },
                      ty = { KEEL_FLOAT32, { 2, { 4, 3 } }, shares };
    keel_dataset *soft;
    must(keel_dataset_from_arrays(&soft, &tx, &ty, NULL));
    must(keel_dataset_balanced_weights(soft, w, 3));
    for (int i = 0; i < 3; i++) assert_true(fabs(w[i] - of_shares[i]) < 1e-15);
    keel_dataset_destroy(soft);
    assert_int_equal(keel_dataset_balanced_weights(d, w, 3), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "row 9 has the label 3"));
    static const struct {
        const char *stage;
        const keel_arg args[2];
        const char *says; /* NULL: the same weights */
    } cases[] = {
        { "batch", { KEEL_ARG_INT("batch_size", 4) }, NULL },
        { "batch", { KEEL_ARG_INT("batch_size", 3) }, NULL },
        { "Rescaling", { KEEL_ARG_FLOAT("scale", 2) }, NULL },
        { "shuffle", { { 0 } }, NULL },
        { "repeat", { KEEL_ARG_INT("count", 2) }, NULL },
        { "repeat", { { 0 } }, "never ends" },
        { "ignore_errors", { KEEL_ARG_INT("most", 1) }, "one after another" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_dataset *out;
        must(keel_dataset_apply(&out, cases[i].stage, cases[i].args, &d, 1));
        const keel_status s = keel_dataset_balanced_weights(out, w, 4);
        assert_int_equal(s, cases[i].says ? KEEL_EUNSUP : KEEL_OK);
        if (s < 0 && !strstr(keel_error(), cases[i].says)) fail_msg("%s", keel_error());
        for (int k = 0; s >= 0 && k < 4; k++) assert_true(fabs(w[k] - want[k]) < 1e-15);
        keel_dataset_destroy(out);
    }
    keel_dataset_destroy(d);
}

/* ---- the display ----------------------------------------------------------------------------- */

static void progbar_logger_writes_a_line_for_each_epoch_and_pass(void **unused)
{
    (void)unused;
    static const char *const says[] = { "Epoch 1/2\n",
                                        "ms/step - loss: ", " - val_loss: ", "\nEpoch 2/2\n" };
    char path[500], text[2000] = { 0 };
    keel_callback *c;
    keel_logs logs;
    keel_model *m = sgd(0.1);
    must(keel_callback_parse(&c, "ProgbarLogger"));
    snprintf(path, sizeof path, "%s/progbar.txt", folder);
    fflush(stdout);
    const int own = dup(STDOUT_FILENO);
    FILE *f = fopen(path, "w+");
    assert_true(own >= 0 && f && dup2(fileno(f), STDOUT_FILENO) >= 0);
    keel_fit_options o = options(2, KEEL_CALLBACKS(c));
    o.validation = tested;
    const keel_status fitted = keel_fit(m, strategy[2], rows, &o, NULL);
    const keel_status scored = keel_evaluate(m, strategy[2], tested, &o, &logs);
    fflush(stdout);
    dup2(own, STDOUT_FILENO);
    close(own);
    must(fitted);
    must(scored);
    rewind(f);
    int lines = 0, validated = 0;
    for (size_t n = fread(text, 1, sizeof text - 1, f), i = 0; i < n; i++) lines += text[i] == '\n';
    fclose(f);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (!strstr(text, says[i])) fail_msg("no '%s' in: %s", says[i], text);
    for (const char *at = text; (at = strstr(at, "val_loss")); at++) validated++;
    assert_int_equal(lines, 2 * 2 + 1); /* the last is that of evaluate */
    assert_int_equal(validated, 2);
    keel_callback_destroy(c);
    keel_model_destroy(m);
}

/* ---- state, failing memory ------------------------------------------------------------------- */

static void a_callback_goes_on_from_its_state(void **unused)
{
    (void)unused;
    const char *const calls[] = { "EarlyStopping(patience=2, restore_best_weights=True)",
                                  "ReduceLROnPlateau(factor=0.5, patience=2, cooldown=1)",
                                  "ModelCheckpoint('/tmp/{epoch}.keras', save_freq=100)" };
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        keel_callback *a, *b;
        char *one, *two;
        keel_callback_tensor t, u;
        int n = 0;
        keel_model *m = sgd(0.4);
        must(keel_callback_parse(&a, calls[k]));
        must(keel_callback_parse(&b, calls[k]));
        const keel_fit_options o = options(3, KEEL_CALLBACKS(a)), p = options(1, KEEL_CALLBACKS(b));
        must(keel_fit(m, strategy[2], rows, &o, NULL));
        must(keel_fit(m, strategy[2], rows, &p, NULL));
        must(a->save_state(a->context, &one));
        must(b->load_state(b->context, one));
        must(b->save_state(b->context, &two));
        assert_string_equal(one, two);
        while (a->state_tensor(a->context, n, &t) == KEEL_OK) {
            must(b->state_tensor(b->context, n++, &u));
            assert_string_equal(t.name, u.name);
        }
        assert_int_equal(b->state_tensor(b->context, n, &u), KEEL_END);
        assert_int_equal(n, k == 0 ? 4 : 0);
        assert_int_equal(b->load_state(b->context, "{\"wait\": \"x\"}"), KEEL_EFORMAT);
        assert_int_equal(b->load_state(b->context, "{"), KEEL_EFORMAT);
        keel_model_summary_free(one);
        keel_model_summary_free(two);
        keel_callback_destroy(a);
        keel_callback_destroy(b);
        keel_model_destroy(m);
    }
}

static void each_failing_allocation_is_one_error_and_no_leak(void **unused)
{
    (void)unused;
    char text[6][500];
    const char *const forms[] = { "EarlyStopping(restore_best_weights=True, patience=5, verbose=1)",
                                  "ReduceLROnPlateau(patience=1, verbose=1)",
                                  "CSVLogger('%s/fault.csv')",
                                  "ModelCheckpoint('%s/fault-{epoch}.keras')",
                                  "LearningRateScheduler(ExponentialDecay(0.3, 2, 0.5))",
                                  "TensorBoard('%s/fault', histogram_freq=1)" };
    for (int k = 0; k < 6; k++)
        if (strchr(forms[k], '%'))
            snprintf(text[k], sizeof text[k], "%.*s%s%s", (int)strcspn(forms[k], "%"), forms[k],
                     folder, strchr(forms[k], '%') + 2);
        else
            snprintf(text[k], sizeof text[k], "%s", forms[k]);
    for (int k = 0; k < 6; k++) {
        int failures = 0;
        keel_logs logs;
        keel_model *m = sgd(0.1);
        must(keel_evaluate(m, strategy[2], rows, NULL, &logs)); /* a model keeps names of logs */
        const int64_t live = keel_memory_live();
        for (int64_t at = 0;; at++) {
            keel_callback *c = NULL;
            keel_memory_fail_at(at);
            keel_status s = keel_callback_parse(&c, text[k]);
            const keel_fit_options o = options(1, KEEL_CALLBACKS(c));
            if (s >= 0) s = keel_fit(m, strategy[2], rows, &o, NULL);
            keel_memory_fail_at(-1);
            keel_callback_destroy(c);
            if (keel_memory_live() != live)
                fail_msg("%s: failing allocation %d leaks", text[k], (int)at);
            if (s >= 0) break;
            if (s != KEEL_ENOMEM) fail_msg("%s: allocation %d: %s", text[k], (int)at, keel_error());
            failures++;
            assert_true(at < 5000);
        }
        assert_true(failures > 50);
        keel_model_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_come_in_keras_order_with_keras_logs),
        cmocka_unit_test(a_stop_after_a_step_is_validated_and_ends_the_fit),
        cmocka_unit_test(a_stop_before_the_first_step_comes_after_it),
        cmocka_unit_test(epochs_rates_and_weights_are_those_of_keras),
        cmocka_unit_test(what_follows_from_a_course_of_values_is_what_keras_decides),
        cmocka_unit_test(a_schedule_by_epochs_is_a_function_or_a_text),
        cmocka_unit_test(averages_are_tested_and_saved_as_by_keras),
        cmocka_unit_test(what_fails_while_averages_are_in_the_model_leaves_the_weights),
        cmocka_unit_test(large_weights_are_swapped_whole),
        cmocka_unit_test(checkpoints_have_the_names_of_keras_and_the_weights_of_their_moment),
        cmocka_unit_test(the_csv_logger_writes_the_file_of_keras),
        cmocka_unit_test(the_csv_logger_writes_into_a_pipe),
        cmocka_unit_test(a_history_is_a_table_with_its_names_quoted),
        cmocka_unit_test(the_csv_logger_writes_over_no_table_of_data),
        cmocka_unit_test(tensorboard_has_the_values_of_the_history),
        cmocka_unit_test(tensorboard_files_have_a_record_for_each_value),
        cmocka_unit_test(the_model_is_that_of_the_last_step_and_what_is_set_holds),
        cmocka_unit_test(a_step_after_weights_were_set_is_that_of_a_model_with_them),
        cmocka_unit_test(packed_copies_of_weights_follow_what_is_set),
        cmocka_unit_test(a_log_that_a_callback_adds_to_a_validation_is_one_of_the_epoch),
        cmocka_unit_test(what_a_callback_may_not_do_is_an_error),
        cmocka_unit_test(names_are_made_as_by_python),
        cmocka_unit_test(metrics_say_whether_more_of_them_is_better),
        cmocka_unit_test(wrong_callbacks_are_refused_before_the_first_step),
        cmocka_unit_test(wrong_rows_of_the_validation_end_only_it_where_asked),
        cmocka_unit_test(a_value_that_is_not_a_number_is_a_value_as_in_keras),
        cmocka_unit_test(balanced_weights_are_those_of_scikit_learn),
        cmocka_unit_test(progbar_logger_writes_a_line_for_each_epoch_and_pass),
        cmocka_unit_test(a_callback_goes_on_from_its_state),
        cmocka_unit_test(each_failing_allocation_is_one_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
