/* Runs in a control group with little memory: what does not fit is refused before the first step,
 * with the bytes that it lacks, and with those it runs. The group is a tree of files. */
#include "must.h"
#include "base/memory.h"
#include "data_files.h"
#include "device/memory_limit.h"
#include "train/run_memory.h"

enum { ROWS = 96, WIDTH = 64, HIDDEN = 2048, BATCH = 16 };
#define GROUP_BYTES (INT64_C(1) << 40)

static char root[256];

/* From now on a control group leaves so many bytes; -1: there is none. */
static void leave(int64_t left)
{
    char text[64];
    if (left < 0) {
        keel_memory_limit_pretend(NULL);
        return;
    }
    snprintf(text, sizeof text, "%lld\n", (long long)(GROUP_BYTES - left));
    files_text("sys/fs/cgroup/memory.current", text);
    keel_memory_limit_pretend(root);
}

/* The number behind these words in the error text. */
static int64_t number(const char *words)
{
    const char *at = strstr(keel_error(), words);
    if (!at) fail_msg("no '%s' in: %s", words, keel_error());
    return strtoll(at + strlen(words), NULL, 10);
}

/* ---- runs -------------------------------------------------------------------------------------
 */

static struct {
    keel_model *model;
    keel_strategy *strategy;
    keel_dataset *data;
    int steps; /* begun so far */
} all;

static keel_status count_step(void *context, const keel_moment *at)
{
    (void)context, (void)at;
    all.steps++;
    return KEEL_OK;
}

static keel_callback counts = { KEEL_CALLBACK, .on_train_batch_begin = count_step,
                                .on_test_batch_begin = count_step,
                                .on_predict_batch_begin = count_step };

static keel_fit_options options(void)
{
    static const keel_callback *const callbacks[] = { &counts, NULL };
    return (keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH, .threads = 1,
                               .callbacks = callbacks };
}

static keel_status run_evaluation(void)
{
    keel_logs logs;
    const keel_fit_options o = options();
    return keel_evaluate(all.model, all.strategy, all.data, &o, &logs);
}

static keel_status run_prediction(void)
{
    keel_tensor out = { 0 };
    const keel_fit_options o = options();
    const keel_status s = keel_predict(all.model, all.strategy, all.data, &o, &out);
    keel_tensor_free(&out);
    return s;
}

/* Rows in fives, which nobody has counted. */
static keel_status next(void *at, void *x, void *y, float *weight, int64_t capacity, int64_t *rows)
{
    int64_t *done = at;
    (void)y, (void)weight;
    *rows = capacity < ROWS - *done ? capacity : ROWS - *done;
    memset(x, 0, (size_t)*rows * WIDTH * sizeof(float));
    *done += *rows;
    return *rows ? KEEL_OK : KEEL_END;
}

static keel_status run_prediction_of_a_stream(void)
{
    int64_t done = 0;
    keel_dataset *d;
    keel_tensor out = { 0 };
    const keel_fit_options o = options();
    const keel_generator g = {
        .size = sizeof g, .context = &done, .x_shape = { 1, { WIDTH } }, .max_rows = 5, .next = next
    };
    KEEL_TRY(keel_dataset_from_generator(&d, &g));
    const keel_status s = keel_predict(all.model, all.strategy, d, &o, &out);
    if (s >= 0) assert_int_equal(out.shape.dim[0], ROWS);
    keel_tensor_free(&out);
    keel_dataset_destroy(d);
    return s;
}

static keel_status run_prediction_into_files(void)
{
    const char *path = files_path("out.npy");
    const keel_fit_options o = options();
    return keel_predict_npy(all.model, all.strategy, all.data, &o, &path, NULL);
}

static keel_status run_fit(bool validates)
{
    keel_history h;
    keel_fit_options o = options();
    if (validates) o.validation = all.data;
    const keel_status s = keel_fit(all.model, all.strategy, all.data, &o, &h);
    keel_history_free(&h);
    return s;
}

static keel_status run_plain_fit(void)
{
    return run_fit(false);
}

static keel_status run_fit_with_validation(void)
{
    return run_fit(true);
}

static keel_status forward(void *context, keel_trace *t)
{
    keel_traced x, y;
    (void)context;
    all.steps++;
    keel_trace_input(t, "x", &x);
    keel_trace_model(t, all.model, false, &x, 1, &y);
    return keel_trace_return(t, "y", y);
}

static keel_function *new_function(void)
{
    keel_function *f;
    const keel_data_field in = { "x", KEEL_FLOAT32, { 1, { WIDTH } } };
    const keel_status s =
        keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = forward,
                                                           .input = &in, .n_input = 1 });
    return s < 0 ? NULL : f;
}

static keel_status step_of(keel_function *f, int64_t rows)
{
    static float x[ROWS * WIDTH];
    const keel_tensor in = { KEEL_FLOAT32, { 2, { rows, WIDTH } }, x };
    const keel_status s = keel_strategy_run(all.strategy, f, &in, 1);
    all.steps = s == KEEL_OK; /* to trace is no step */
    return s;
}

static keel_status run_function(void)
{
    keel_function *f = new_function();
    const keel_status s = f ? step_of(f, BATCH) : KEEL_ENOMEM;
    keel_function_destroy(f);
    return s;
}

static const struct run {
    const char *what;
    keel_status (*go)(void);
    const char *named;       /* in the error text */
    int64_t outputs;         /* bytes */
    bool has_input, by_file; /* reads a dataset; writes files */
} runs[] = {
    { "an evaluation", run_evaluation, "this evaluation needs", .has_input = true },
    { "a prediction that stays in memory", run_prediction, "this prediction needs",
      ROWS *HIDDEN *(int)sizeof(float), true },
    { "a prediction into files", run_prediction_into_files, "this prediction needs",
      BATCH *HIDDEN *(int)sizeof(float), true },
    { "a prediction of a stream that does not say its rows", run_prediction_of_a_stream,
      "this prediction needs", BATCH *HIDDEN *(int)sizeof(float), true },
    { "a fit", run_plain_fit, "this fit needs", .has_input = true },
    { "a fit with validation", run_fit_with_validation, "this fit needs", .has_input = true },
    { "a function", run_function, "this function needs" },
};
enum { RUNS = sizeof runs / sizeof *runs };

static void refused(const struct run *r, int64_t left)
{
    leave(left);
    all.steps = 0;
    assert_int_equal(r->go(), KEEL_EARG);
    assert_int_equal(all.steps, 0);
    if (!strstr(keel_error(), r->named) || number("leaves ") != left)
        fail_msg("%s: %s", r->what, keel_error());
}

/* The bytes that a run needs. */
static int64_t needed(const struct run *r)
{
    refused(r, 2 << 20);
    return number(r->named);
}

static void what_does_not_fit_is_refused_and_with_the_bytes_that_it_lacks_it_runs(void **state)
{
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        const struct run *r = &runs[i];
        const int64_t needs = needed(r);
        int64_t parts = number("more: ") + (r->outputs ? r->outputs : 0);
        if (r->outputs) assert_non_null(strstr(keel_error(), "for the rows that come out"));
        if (r->has_input) parts += number("at least ");
        assert_int_equal(parts, needs);
        refused(r, needs - 1);
        leave(needs);
        must(r->go());
        assert_true(all.steps > 0);
        leave(-1);
        must(r->go());
    }
}

static void a_function_is_checked_once_more_where_its_steps_become_larger(void **state)
{
    (void)state;
    leave(GROUP_BYTES);
    keel_function *f = new_function();
    assert_non_null(f);
    must(step_of(f, 4));
    leave(0);
    must(step_of(f, 4));
    must(step_of(f, 3));
    for (int i = 0; i < 2; i++) assert_int_equal(step_of(f, ROWS), KEEL_EARG);
    const int64_t needs = number("this function needs ");
    leave(needs - 1);
    assert_int_equal(step_of(f, ROWS), KEEL_EARG);
    leave(needs);
    must(step_of(f, ROWS));
    leave(0);
    must(step_of(f, ROWS));
    keel_function_destroy(f);
}

static keel_status leave_little(void *context, const keel_moment *at)
{
    (void)context;
    all.steps++;
    if (at->step == 2) leave(1000);
    return KEEL_OK;
}

static void outputs_that_grow_are_refused_where_the_group_has_no_more(void **state)
{
    (void)state;
    const keel_callback usual = counts;
    const struct run stream = { .what = "a stream",
                                .go = run_prediction_of_a_stream,
                                .named = "this prediction needs" };
    leave(needed(&stream));
    all.steps = 0;
    counts.on_predict_batch_begin = leave_little;
    assert_int_equal(stream.go(), KEEL_ENOMEM);
    counts = usual;
    assert_int_equal(all.steps, 4);
    assert_int_equal(number("leaves "), 1000);
    /* a half more than the rows of four steps, where there was room for three */
    assert_int_equal(number("come out need "), (6 - 3) * BATCH * HIDDEN * (int)sizeof(float));
    leave(-1);
    must(stream.go());
}

static void each_allocation_that_fails_leaves_nothing_behind(void **state)
{
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        leave(needed(&runs[i]));
        must(runs[i].go());
        for (int64_t at = 0;; at++) {
            const int64_t live = keel_memory_live();
            keel_memory_fail_at(at);
            const keel_status s = runs[i].go();
            keel_memory_fail_at(-1);
            if (s < 0 && s != KEEL_ENOMEM) fail_msg("%s: %s", runs[i].what, keel_error());
            assert_int_equal(keel_memory_live(), live);
            if (s >= 0) break;
        }
    }
}

static void numbers_that_no_memory_has_are_refused_too(void **state)
{
    (void)state;
    leave(1000);
    const keel_run_memory m = { .what = "fit", .steps = INT64_MAX, .outputs = INT64_MAX };
    assert_int_equal(keel_run_memory_check(&m), KEEL_EARG);
    assert_int_equal(number("this fit needs "), INT64_MAX);
}

static int begin(void **state)
{
    static float x[ROWS * WIDTH], y[ROWS * HIDDEN];
    (void)state;
    files_begin();
    snprintf(root, sizeof root, "%s", files_root);
    static const char *const folders[] = { "proc", "proc/self", "sys", "sys/fs", "sys/fs/cgroup" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) files_folder(folders[i]);
    char text[64];
    snprintf(text, sizeof text, "%lld\n", (long long)GROUP_BYTES);
    files_text("sys/fs/cgroup/memory.max", text);
    files_text("proc/self/cgroup", "0::/\n");
    files_text("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    must(keel_model_create(&all.model, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(all.model, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", WIDTH))));
    must(keel_model_add(all.model, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", HIDDEN))));
    must(keel_model_compile(
        all.model, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } } }));
    must(keel_strategy_create(&all.strategy, "cpu:0"));
    must(keel_dataset_from_arrays(
        &all.data, &(keel_tensor){ KEEL_FLOAT32, { 2, { ROWS, WIDTH } }, x },
        &(keel_tensor){ KEEL_FLOAT32, { 2, { ROWS, HIDDEN } }, y }, NULL));
    return 0;
}

static int end(void **state)
{
    (void)state;
    keel_memory_limit_pretend(NULL);
    keel_dataset_destroy(all.data);
    keel_strategy_destroy(all.strategy);
    keel_model_destroy(all.model);
    files_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_refused_and_with_the_bytes_that_it_lacks_it_runs),
        cmocka_unit_test(a_function_is_checked_once_more_where_its_steps_become_larger),
        cmocka_unit_test(outputs_that_grow_are_refused_where_the_group_has_no_more),
        cmocka_unit_test(each_allocation_that_fails_leaves_nothing_behind),
        cmocka_unit_test(numbers_that_no_memory_has_are_refused_too),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
