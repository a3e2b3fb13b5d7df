/* What a fit needs for copies of its model, in a process of its own: none while it trains, but
 * those that checkpoints and callbacks need, which are in the plan. And no file is twice in memory
 * while it is written or read, and the optimizer's state not at all in a process that only
 * infers. */
#include "must.h"
#include "keel/function.h"
#include "keel/plan.h"
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { COUNTS = false, UNITS = 256 }; /* a sanitizer keeps memory that was freed */
#else
enum { COUNTS = true, UNITS = 2048 };
#endif

enum { ROWS = 16, BATCH = 4 };
#define WEIGHTS (2 * (int64_t)UNITS * (UNITS + 1) * 4)
#define LITTLE  ((int64_t)12 << 20) /* threads, libraries, metadata of files */
extern char **environ;

typedef struct run {
    const char *name;
    bool checkpoints;
    const char *callback; /* NULL: none */
    int copies;           /* that it needs, in weights: Adam has two slots */
} run;
static const run RUNS[] = {
    { "a model that is saved at the end", false, NULL, 0 },
    { "a model with a checkpoint each step", true, NULL, 3 },
    { "a model that ends with its best weights", false,
      "EarlyStopping(monitor='loss', restore_best_weights=True)", 2 },
    { "a model whose weights are drawn", false, "TensorBoard('%s', histogram_freq=1)", 1 },
    { "a model that a callback saves", false, "ModelCheckpoint('%s.best.keras')", 3 },
};

static void folder_of(char out[512])
{
    const char *tmp = getenv("KEEL_TEST_TMP");
    snprintf(out, 512, "%s/saved_memory", tmp ? tmp : "/tmp");
}

static keel_dataset *data_of_zeros(void)
{
    static float x[ROWS][UNITS], y[ROWS][UNITS];
    const keel_tensor in = { KEEL_FLOAT32, { 2, { ROWS, UNITS } }, x };
    const keel_tensor out = { KEEL_FLOAT32, { 2, { ROWS, UNITS } }, y };
    keel_dataset *d;
    must(keel_dataset_from_arrays(&d, &in, &out, NULL));
    return d;
}

/* Fits by Adam, and fills in the plan of that. */
static void fit(const run *r, keel_plan *plan, keel_history *h)
{
    char folder[512], file[540], callback[640];
    keel_callback *c = NULL;
    keel_model *m;
    keel_strategy *s;
    keel_dataset *d = data_of_zeros();
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", UNITS))));
    for (int i = 0; i < 2; i++)
        must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", UNITS))));
    must(keel_model_compile(
        m,
        &(keel_compile){ KEEL_COMPILE,
                         .optimizer = { "Adam", KEEL_ARGS(KEEL_ARG_FLOAT("global_clipnorm", 1)) },
                         .loss = { { "mean_squared_error" } } }));
    must(keel_strategy_create(&s, "cpu:0"));
    folder_of(folder);
    snprintf(file, sizeof file, "%s.keras", folder);
    if (r->callback) {
        snprintf(callback, sizeof callback, r->callback, folder);
        must(keel_callback_parse(&c, callback));
    }
    must(keel_plan_make(plan, m, s, ROWS, BATCH, KEEL_KEEP, NULL));
    const keel_checkpoint_options each = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                           .every_steps = 1 };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = 1,
                                 .checkpoint = r->checkpoints ? &each : NULL,
                                 .callbacks = r->callback ? KEEL_CALLBACKS(c) : NULL };
    must(keel_fit(m, s, d, &o, h));
    must(keel_model_save(m, file));
    keel_callback_destroy(c);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
}

/* The most that the process had, in bytes. */
static int64_t peak(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (int64_t)u.ru_maxrss * 1024;
}

/* How much more the process had while it loaded the model that was trained: its arrays leave the
 * image of the file one by one. */
static int64_t loading(void)
{
    char folder[512], file[540];
    const int64_t before = peak();
    keel_model *m;
    folder_of(folder);
    snprintf(file, sizeof file, "%s.keras", folder);
    must(keel_model_load(&m, file));
    keel_model_destroy(m);
    unlink(file);
    return peak() - before;
}

/* The model that was trained, in a process that has not trained it. */
static int infer(void)
{
    char folder[512], file[540];
    const int64_t before = peak();
    keel_model *m;
    keel_strategy *s;
    keel_dataset *d = data_of_zeros();
    keel_logs logs;
    keel_tensor out;
    folder_of(folder);
    snprintf(file, sizeof file, "%s.keras", folder);
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_model_load_without_state(&m, file));
    int failed = COUNTS && peak() - before > WEIGHTS + LITTLE ? 1 : 0;
    must(keel_predict(m, s, d, NULL, &out));
    must(keel_evaluate(m, s, d, NULL, &logs));
    if (COUNTS && peak() - before > WEIGHTS + LITTLE) failed = failed ? failed : 2;
    if (failed) fprintf(stderr, "%lld bytes at most\n", (long long)(peak() - before));
    keel_tensor_free(&out);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
    unlink(file);
    return failed;
}

static keel_status step(void *model, keel_trace *t)
{
    keel_traced x, y;
    keel_trace_input(t, "x", &x);
    keel_trace_model(t, model, false, &x, 1, &y);
    return keel_trace_return(t, "y", y);
}

/* A function has the weights of the model that it calls, and gives them back. */
static int call(void)
{
    static float x[BATCH][UNITS];
    const keel_data_field input = {
        .path = "x", .dtype = KEEL_FLOAT32, .shape = { 1, { UNITS } }, .role = KEEL_ROLE_INPUT
    };
    const keel_tensor rows = { KEEL_FLOAT32, { 2, { BATCH, UNITS } }, x };
    const int64_t before = peak();
    keel_model *m;
    keel_strategy *s;
    keel_function *f;
    keel_tensor was, is;
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", UNITS))));
    for (int i = 0; i < 8; i++)
        must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", UNITS))));
    must(keel_model_get_weight(m, "dense/kernel", &was));
    const keel_function_options o = { KEEL_FUNCTION_OPTIONS, .step = step, .context = m,
                                      .input = &input, .n_input = 1 };
    must(keel_function_create(&f, &o));
    for (int i = 0; i < 2; i++) must(keel_strategy_run(s, f, &rows, 1));
    keel_function_destroy(f);
    /* WEIGHTS are those of two layers; the first values of one are drawn in double */
    int failed = COUNTS && peak() - before > 5 * WEIGHTS + LITTLE ? 1 : 0;
    if (failed) fprintf(stderr, "%lld bytes at most\n", (long long)(peak() - before));
    must(keel_model_get_weight(m, "dense/kernel", &is));
    if (memcmp(was.data, is.data, sizeof(float[UNITS]) * UNITS)) failed = 2;
    keel_tensor_free(&was);
    keel_tensor_free(&is);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
    return failed;
}

/* Trains a model for infer. */
static int make(void)
{
    keel_plan plan = { 0 };
    keel_history h = { 0 };
    fit(&RUNS[0], &plan, &h);
    keel_history_free(&h);
    keel_plan_free(&plan);
    return 0;
}

/* Exits with the number of the first check that fails. */
static int child(const run *r)
{
    keel_plan plan = { 0 };
    keel_history h = { 0 };
    fit(r, &plan, &h);
    const int64_t model = 3 * WEIGHTS;
    int failed = 0;
    if (plan.model_bytes != model) failed = 1;
    /* weights, two slots and gradients, all of them once */
    if (plan.total_bytes < 4 * WEIGHTS || plan.total_bytes > 4 * WEIGHTS + LITTLE) failed = 2;
    if (h.memory_planned < plan.total_bytes + r->copies * WEIGHTS) failed = 3;
    if (h.memory_planned > plan.total_bytes + r->copies * WEIGHTS + LITTLE) failed = 4;
    if (COUNTS && h.memory_used > h.memory_planned + LITTLE) failed = 5;
    if (COUNTS && loading() > LITTLE) failed = 6;
    if (failed)
        fprintf(stderr, "%lld planned by keel_plan, %lld by the fit, %lld used\n",
                (long long)plan.total_bytes, (long long)h.memory_planned, (long long)h.memory_used);
    keel_history_free(&h);
    keel_plan_free(&plan);
    return failed;
}

/* What a process of this program exits with. */
static int run_alone(char what)
{
    char name[] = "saved_memory", text[] = { what, 0 }, *args[] = { name, text, NULL };
    int status = -1;
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ), 0);
    assert_true(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_plan_has_what_saving_needs(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof RUNS / sizeof *RUNS; i++) {
        char command[1200], folder[512];
        folder_of(folder);
        snprintf(command, sizeof command, "rm -rf '%s' '%s.best.keras'", folder, folder);
        assert_int_equal(system(command), 0);
        const int failed = run_alone((char)('0' + i));
        if (failed) fail_msg("%s: check %d", RUNS[i].name, failed);
        assert_int_equal(system(command), 0);
    }
}

static void who_infers_has_the_weights_and_no_state(void **unused)
{
    (void)unused;
    assert_int_equal(run_alone('m'), 0);
    assert_int_equal(run_alone('i'), 0);
}

static void a_function_has_the_weights_of_its_model(void **unused)
{
    (void)unused;
    assert_int_equal(run_alone('f'), 0);
}

int main(int argc, char **argv)
{
    if (argc == 2 && argv[1][0] == 'f') return call();
    if (argc == 2 && argv[1][0] == 'm') return make();
    if (argc == 2 && argv[1][0] == 'i') return infer();
    if (argc == 2) return child(&RUNS[argv[1][0] - '0']);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_has_what_saving_needs),
        cmocka_unit_test(who_infers_has_the_weights_and_no_state),
        cmocka_unit_test(a_function_has_the_weights_of_its_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
