/* Whole fits on several GPUs by the plug-in's own source (device/cuda), on the emulator and doubles
 * of CUDA's runtime and libraries: numbers are those of the host, NCCL has added up the gradients,
 * and bits are those of one GPU where the host adds, however streams lag. Any call may fail: then
 * the fit ends with the weights of its last step and says who failed, or goes on with the same
 * bits. It waits for nobody for ever, and leaves nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "cuda_double.h"
#include "device/cuda_plugin.h"
#include "emulator.h"
#include "reproducible_works.h"
#include "sweep.h"
#include "thread_processes.h"
#include "train/strategy.h"

extern const keel_cuda_plugin keel_cuda;

enum { GPUS = CUDA_DOUBLE_GPUS, EPOCHS = 2, PATIENCE = 30, LONGEST = SLOW ? 1200 : 300 };

/* ---- works ----------------------------------------------------------------------------------- */

/* 3 x 3 places: the emulator runs some million instructions of kernels a second. */
static keel_symbol thirds(keel_model *m, keel_symbol x)
{
    return must_call(m, "AveragePooling2D", KEEL_ARGS(KEEL_ARG_INT("pool_size", 3)), x);
}

static keel_symbol dense_layers(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = dense(m, thirds(m, x), 6, "relu");
    return dense(m, must_call(m, "Flatten", NULL, x), CLASSES, "softmax");
}

static keel_symbol convolution(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = conv(m, thirds(m, x), 4, 3, "first");
    x = must_call(m, "ReLU", NULL, must_call(m, "BatchNormalization", NULL, x));
    return dense(m, must_call(m, "Flatten", NULL, x), CLASSES, "softmax");
}

/* The second convolution has more channels than our own kernels of narrow values take. */
static keel_symbol two_convolutions(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "ReLU", NULL, conv(m, thirds(m, x), 6, 3, "first"));
    x = conv(m, x, 4, 3, "second");
    return dense(m, must_call(m, "Flatten", NULL, x), CLASSES, "softmax");
}

/* Steps of 24 rows end with one of 3, which has none for the fourth GPU; of 37, with one row. */
static const struct work {
    recipe r;
    int summed; /* weights whose gradients devices may add up */
} works[] = {
    { { "dense", dense_layers, KEEL_FLOAT32, NULL, "sgd", KEEL_KEEP, 24, 16, true }, 4 },
    { { "dense by adam", dense_layers, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 24, 16, false }, 4 },
    { { "convolution", convolution, KEEL_FLOAT32, NULL, "sgd", KEEL_KEEP, 24, 16, true }, 4 },
    { { "a step of one row", dense_layers, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 37, 16, false },
      4 },
};
enum { WORKS = sizeof works / sizeof *works };

/* Steps of an epoch in which each of n GPUs has rows. */
static int shared_steps(const recipe *r, int n)
{
    int steps = 0;
    for (int row = 0; row < ROWS; row += r->batch_size)
        steps += (ROWS - row < r->batch_size ? ROWS - row : r->batch_size) >= n;
    return steps;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

typedef struct machine {
    keel_device *gpu[GPUS];
    keel_strategy *strategy;
    int n; /* 0: the host computes */
    int64_t taken;
} machine;

static machine machine_of(int n)
{
    machine m = { .n = n, .taken = cuda_double_taken() };
    for (int i = 0; i < n; i++) must(keel_cuda.open(&m.gpu[i], i));
    if (n > 0)
        must(keel_strategy_create_devices(&m.strategy, m.gpu, n));
    else
        must(keel_strategy_create(&m.strategy, "cpu:0"));
    if (n > 0) must(keel_strategy_timeout(m.strategy, PATIENCE));
    return m;
}

/* Nothing stays, and no kernel and no call was wrong. */
static void close_machine(machine *m, const char *how)
{
    keel_strategy_destroy(m->strategy);
    for (int i = 0; i < m->n; i++) m->gpu[i]->type->close(m->gpu[i]);
    cuda_double_unloads();
    const char *fault = emu_report();
    if (fault) fail_msg("%s: %s", how, fault);
    emu_release_all();
    if (cuda_double_live() || cuda_runtime_live() || cuda_double_taken() != m->taken)
        fail_msg("%s: %d of the libraries', %d of the runtime's and %lld bytes stay", how,
                 (int)cuda_double_live(), (int)cuda_runtime_live(),
                 (long long)(cuda_double_taken() - m->taken));
}

static void tell(void *context, const char *line)
{
    char *text = context;
    snprintf(text + strlen(text), 800 - strlen(text), "%s\n", line);
}

typedef struct ran {
    outcome o;
    int64_t sums, replays;
    char told[800];
} ran;

/* Fit, evaluate and predict on n GPUs. */
static ran run(const recipe *r, int n, bool reproducible)
{
    ran x = { .o.model = model_of(r) };
    keel_dataset *d = rows_of(r);
    machine m = machine_of(n);
    const int64_t sums = cuda_double_sums(), replays = cuda_runtime_replays();
    const keel_fit_options options = { KEEL_FIT_OPTIONS,        .batch_size = r->batch_size,
                                       .epochs = EPOCHS,        .end = r->end,
                                       .explain_devices = tell, .explain_devices_context = x.told };
    if (reproducible) must(keel_strategy_reproducible(m.strategy, r->shards));
    must(keel_fit(x.o.model, m.strategy, d, &options, &x.o.history));
    must(keel_evaluate(x.o.model, m.strategy, d, &options, &x.o.logs));
    must(keel_predict(x.o.model, m.strategy, d, &options, &x.o.predicted));
    x.sums = cuda_double_sums() - sums;
    x.replays = cuda_runtime_replays() - replays;
    close_machine(&m, r->name);
    keel_dataset_destroy(d);
    return x;
}

static void close_numbers(const char *what, const keel_tensor *a, const keel_tensor *b,
                          const recipe *r, int n)
{
    const float *x = a->data, *y = b->data;
    for (int64_t i = 0; i < keel_shape_count(&a->shape); i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= 2e-4))
            fail_msg("%s on %d GPUs: %s, number %d is %.9g, the host's is %.9g", r->name, n, what,
                     (int)i, (double)x[i], (double)y[i]);
}

static void numbers_are_those_of_the_host(void **unused)
{
    (void)unused;
    for (int w = 0; w < WORKS; w++) {
        const recipe *r = &works[w].r;
        ran host = run(r, 0, false);
        for (int n = 1; n <= GPUS; n++) {
            cuda_runtime_late(n % 2 ? 0 : (uint32_t)(7 * w + n));
            ran gpus = run(r, n, false);
            const int64_t want = n > 1 ? works[w].summed * shared_steps(r, n) * EPOCHS : 0;
            if (gpus.sums != want)
                fail_msg("%s on %d GPUs: NCCL has made %d sums, not %d", r->name, n, (int)gpus.sums,
                         (int)want);
            if (gpus.replays < n * gpus.o.history.steps / 2)
                fail_msg("%s on %d GPUs: %d replays", r->name, n, (int)gpus.replays);
            close_numbers("predictions", &gpus.o.predicted, &host.o.predicted, r, n);
            for (int i = 0; i < keel_model_weight_count(host.o.model); i++) {
                const char *name = keel_model_weight_name(host.o.model, i);
                keel_tensor a, b;
                must(keel_model_get_weight(gpus.o.model, name, &a));
                must(keel_model_get_weight(host.o.model, name, &b));
                close_numbers(name, &a, &b, r, n);
                keel_tensor_free(&a);
                keel_tensor_free(&b);
            }
            forget(&gpus.o);
        }
        forget(&host.o);
    }
    cuda_runtime_late(0);
}

static void bits_are_those_of_one_gpu_where_the_host_adds(void **unused)
{
    (void)unused;
    for (int w = 0; w < WORKS; w++) {
        const recipe *r = &works[w].r;
        ran one = run(r, 1, true);
        for (int n = 2; n <= GPUS; n++) {
            char how[40];
            cuda_runtime_late(n % 2 ? (uint32_t)(7 * w + n) : 0);
            ran gpus = run(r, n, true);
            snprintf(how, sizeof how, "%d GPUs", n);
            assert_int_equal(gpus.sums, 0);
            compare(&one.o, &gpus.o, r, how);
            forget(&gpus.o);
        }
        forget(&one.o);
    }
    cuda_runtime_late(0);
}

/* The double adds rank after rank, as the host does. */
static void without_nccl_the_host_adds_and_says_so(void **unused)
{
    (void)unused;
    for (int w = 0; w < WORKS; w++) {
        const recipe *r = &works[w].r;
        ran own = run(r, 3, false);
        cuda_double_without(CUDA_DOUBLE_NO_NCCL);
        ran host = run(r, 3, false);
        cuda_double_without(0);
        assert_true(own.sums > 0 && host.sums == 0);
        assert_null(strstr(own.told, "gradients are added by the host"));
        assert_non_null(strstr(host.told, "gradients are added by the host: libnccl.so.2 is not"));
        compare(&host.o, &own.o, r, "sums of NCCL");
        forget(&own.o);
        forget(&host.o);
    }
}

/* ---- several processes ----------------------------------------------------------------------- */

/* One of them: a thread with GPUs of its own. */
typedef struct process {
    const recipe *recipe;
    keel_process_group group;
    int first, n; /* GPUs */
    bool reproducible;
    outcome o;
    char told[800], error[1024];
} process;

static keel_status run_process(process *p, keel_strategy *s, const keel_dataset *d)
{
    const keel_fit_options options = {
        KEEL_FIT_OPTIONS,        .batch_size = p->recipe->batch_size,
        .epochs = EPOCHS,        .end = p->recipe->end,
        .explain_devices = tell, .explain_devices_context = p->told
    };
    KEEL_TRY(keel_strategy_timeout(s, LONGEST));
    if (p->reproducible) KEEL_TRY(keel_strategy_reproducible(s, p->recipe->shards));
    KEEL_TRY(keel_fit(p->o.model, s, d, &options, &p->o.history));
    KEEL_TRY(keel_evaluate(p->o.model, s, d, &options, &p->o.logs));
    return keel_predict(p->o.model, s, d, &options, &p->o.predicted);
}

static void *live(void *context)
{
    process *p = context;
    keel_device *gpu[GPUS] = { NULL };
    keel_dataset *d = rows_of(p->recipe);
    keel_strategy *s = NULL;
    keel_status status = KEEL_OK;
    p->group.timeout = LONGEST;
    for (int i = 0; i < p->n && status >= 0; i++) status = keel_cuda.open(&gpu[i], p->first + i);
    if (status >= 0) status = keel_strategy_create_group_beside(&s, gpu, p->n, NULL, &p->group);
    if (status >= 0) status = run_process(p, s, d);
    if (status < 0) snprintf(p->error, sizeof p->error, "%s", keel_error());
    keel_strategy_destroy(s);
    for (int i = 0; i < p->n && gpu[i]; i++) gpu[i]->type->close(gpu[i]);
    keel_dataset_destroy(d);
    return NULL;
}

/* Two processes, with so many GPUs each. Returns the sums that NCCL has made. */
static int64_t run_two(process p[2], const recipe *r, const int n[2], bool reproducible)
{
    thread_group group;
    machine m = { .taken = cuda_double_taken() };
    const int64_t sums = cuda_double_sums();
    thread_group_begin(&group, 2);
    for (int q = 0; q < 2; q++)
        p[q] = (process){ .recipe = r,
                          .group = thread_group_of(&group, q),
                          .first = q ? n[0] : 0,
                          .n = n[q],
                          .reproducible = reproducible,
                          .o.model = model_of(r) };
    live_together(live, p, sizeof *p, 2);
    thread_group_end(&group);
    close_machine(&m, r->name);
    for (int q = 0; q < 2; q++)
        if (p[q].error[0]) fail_msg("%s, process %d: %s", r->name, q, p[q].error);
    return cuda_double_sums() - sums;
}

static void gpus_of_two_processes_have_the_bits_of_one(void **unused)
{
    static const int gpus[][2] = { { 1, 1 }, { 1, 2 }, { 2, 2 } };
    (void)unused;
    for (int w = 0; w < WORKS; w++) {
        const recipe *r = &works[w].r;
        ran one = run(r, 1, true);
        for (int k = w % 2; k < 3; k += 1 + SLOW) {
            process p[2];
            cuda_runtime_late(k % 2 ? (uint32_t)(7 * w + k) : 0);
            assert_int_equal(run_two(p, r, gpus[k], true), 0);
            for (int q = 0; q < 2; q++) {
                compare(&one.o, &p[q].o, r, "two processes");
                forget(&p[q].o);
            }
            assert_null(strstr(p[0].told, "on the host")); /* each GPU moves its weights */
        }
        forget(&one.o);
    }
    cuda_runtime_late(0);
}

static void nccl_adds_up_what_each_process_sends(void **unused)
{
    (void)unused;
    for (int w = 0; w < WORKS - 1; w++) {
        const recipe *r = &works[w].r;
        process p[2];
        ran host = run(r, 0, false);
        if (run_two(p, r, (const int[2]){ 2, 2 }, false) == 0)
            fail_msg("%s: NCCL has made no sums", r->name);
        close_numbers("predictions", &p[0].o.predicted, &host.o.predicted, r, 4);
        compare(&p[0].o, &p[1].o, r, "the other process");
        for (int q = 0; q < 2; q++) forget(&p[q].o);
        forget(&host.o);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

enum { RUNS = SLOW ? 8 : 20, STEPS_MOST = 16 };

/* The weights after so many steps on n GPUs. */
static outcome after(const recipe *r, int n, int64_t steps)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    machine m = machine_of(n);
    const keel_callback ends = end_after(&steps);
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size,
                                       .callbacks = KEEL_CALLBACKS(&ends) };
    if (steps > 0) must(keel_fit(o.model, m.strategy, d, &options, NULL));
    close_machine(&m, r->name);
    keel_dataset_destroy(d);
    return o;
}

static keel_status count_steps(void *context, const keel_moment *now)
{
    ++*(int64_t *)context;
    (void)now;
    return KEEL_OK;
}

/* Whose calls fail: CUDA's once, CUDA's from then on for that GPU, or a library's. */
typedef enum { ONCE, FOR_GOOD, NCCL, CUBLASLT, CUDNN } failure;
static const char *const names[] = { NULL, NULL, "nccl", "cublasLt", "cudnn" };

static void fail_at(failure f, int64_t call)
{
    if (f >= NCCL)
        cuda_double_fail_at(call);
    else
        cuda_runtime_fail_at(call, f == FOR_GOOD);
}

static int64_t calls_of(failure f)
{
    return f >= NCCL ? cuda_double_calls() : cuda_runtime_calls();
}

/* The GPU that has failed, or the layer, not one that has waited for it; or what NCCL says. */
static bool is_told(void)
{
    const char *waited = strstr(keel_error(), "has waited for the gradients of other GPUs");
    return waited ? strstr(waited, "GPUs: NCCL: ") != NULL
                  : strstr(keel_error(), "cuda:") || strstr(keel_error(), "layer '");
}

/* Fits on n GPUs, in which calls fail that are spread over all of them. */
static void fail_all_over(const recipe *r, int n, failure f, int runs)
{
    outcome known[STEPS_MOST] = { 0 };
    keel_dataset *d = rows_of(r);
    int64_t calls = 0;
    int failed = 0, told = 0;
    cuda_double_counts(names[f]);
    for (int k = 0; k <= runs; k++) { /* the first has no failure, and counts the calls */
        char how[120];
        outcome o = { .model = model_of(r) };
        machine m = machine_of(n);
        const int64_t at = k == 0 ? 0 : 1 + (calls - 1) * (k - 1) / runs, before = calls_of(f);
        int64_t stood = 0;
        const keel_callback counts = { KEEL_CALLBACK, .on_train_batch_end = count_steps,
                                       .context = &stood };
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size,
                                           .callbacks = KEEL_CALLBACKS(&counts) };
        cuda_runtime_late(k % 2 ? (uint32_t)k : 0);
        fail_at(f, at);
        const keel_status st = keel_fit(o.model, m.strategy, d, &options, NULL);
        snprintf(how, sizeof how, "call %d of %d (%s), which fails%s", (int)at, (int)calls,
                 names[f] ? names[f] : cuda_runtime_failed(), f == FOR_GOOD ? " for good" : "");
        if (k == 0) {
            assert_int_equal(st, KEEL_OK);
            calls = calls_of(f) - before;
        }
        if (st < 0) {
            failed++;
            if (strstr(keel_error(), "has not answered")) fail_msg("%s: %s", how, keel_error());
            told += is_told();
            if (f != FOR_GOOD) {
                fail_at(f, 0);
                must(keel_predict(o.model, m.strategy, d, &options, &o.predicted));
            }
        }
        const int64_t steps = keel_model_steps_done(o.model);
        assert_true(steps < STEPS_MOST);
        if (steps != stood && (n > 1 || steps > 0)) /* else they were lost with the only GPU */
            fail_msg("%s: %d steps have ended, and the weights are of %d", how, (int)stood,
                     (int)steps);
        fail_at(f, 0);
        close_machine(&m, how);
        cuda_runtime_late(0);
        if (!known[steps].model) known[steps] = after(r, n, steps);
        compare_weights(&known[steps], &o, r, how);
        forget(&o);
    }
    cuda_double_counts(NULL);
    if (told < failed)
        fail_msg("%s: %d of %d failures are told by others", r->name, failed - told, failed);
    if (failed < runs / 2) fail_msg("%s: of %d fits %d failed", r->name, runs, failed);
    for (int i = 0; i < STEPS_MOST; i++)
        if (known[i].model) forget(&known[i]);
    keel_dataset_destroy(d);
}

static void a_call_of_cuda_that_fails_ends_the_fit_with_its_last_step(void **unused)
{
    (void)unused;
    fail_all_over(&works[2].r, 3, ONCE, RUNS);
}

static void a_gpu_that_fails_for_good_ends_the_fit_with_its_last_step(void **unused)
{
    (void)unused;
    fail_all_over(&works[1].r, 3, FOR_GOOD, RUNS);
    fail_all_over(&works[0].r, 1, FOR_GOOD, RUNS / 2);
}

static void a_call_of_nccl_that_fails_ends_the_fit_with_its_last_step(void **unused)
{
    (void)unused;
    fail_all_over(&works[0].r, 3, NCCL, RUNS);
}

static void a_call_of_another_library_that_fails_does_so_too(void **unused)
{
    static const recipe narrow = { "convolutions",
                                   two_convolutions,
                                   KEEL_FLOAT32,
                                   "mixed_bfloat16",
                                   "sgd",
                                   KEEL_KEEP,
                                   24,
                                   16,
                                   true };
    (void)unused;
    fail_all_over(&works[1].r, 2, CUBLASLT, RUNS / 4);
    fail_all_over(&narrow, 2, CUDNN, RUNS / 4);
}

/* ---- outputs that are one value -------------------------------------------------------------- */

/* The kernel of a network of two outputs that are one value, each with a loss, after a fit. */
static void fit_two_losses(int gpus, float kernel[12])
{
    enum { N = 7, IN = 4, UNITS = 3 };
    static float x[N * IN], y[N * UNITS];
    keel_model *m;
    keel_symbol in, out[2];
    keel_dataset *d;
    keel_tensor t;
    for (int i = 0; i < N * IN; i++) x[i] = sinf((float)i * 1.3F);
    for (int i = 0; i < N * UNITS; i++) y[i] = cosf((float)i * 0.7F);
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
    must(keel_model_input(m, KEEL_DIMS(IN), NULL, &in));
    out[0] = must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", UNITS)), in);
    out[1] = must_call(m, "Identity", NULL, out[0]);
    must(keel_model_outputs(m, out, 2));
    const keel_compile c = { KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } },
                             .loss_weights = { 0.25, 0.75 } };
    must(keel_model_compile(m, &c));
    const keel_tensor rows = { KEEL_FLOAT32, { 2, { N, IN } }, x };
    const keel_tensor targets = { KEEL_FLOAT32, { 2, { N, UNITS } }, y };
    const keel_array_field f[3] = {
        { .path = "x", .role = KEEL_ROLE_INPUT, .array = rows },
        { .path = keel_model_output_name(m, 0), .role = KEEL_ROLE_TARGET, .array = targets },
        { .path = keel_model_output_name(m, 1), .role = KEEL_ROLE_TARGET, .array = targets },
    };
    must(keel_dataset_from_fields(&d, f, 3));
    machine on = machine_of(gpus);
    must(keel_fit(m, on.strategy, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 4, .no_shuffle = true },
                  NULL));
    close_machine(&on, "two losses");
    must(keel_model_get_weight(m, "dense/kernel", &t));
    memcpy(kernel, t.data, IN * UNITS * sizeof *kernel);
    keel_tensor_free(&t);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void two_losses_of_one_value_add_up_on_a_gpu(void **unused)
{
    float want[12], got[12];
    (void)unused;
    fit_two_losses(0, want);
    fit_two_losses(1, got);
    for (int i = 0; i < 12; i++)
        if (!(fabsf(want[i] - got[i]) < 1e-6F))
            fail_msg("element %d is %.9g, the host's %.9g", i, (double)got[i], (double)want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_host),
        cmocka_unit_test(bits_are_those_of_one_gpu_where_the_host_adds),
        cmocka_unit_test(two_losses_of_one_value_add_up_on_a_gpu),
        cmocka_unit_test(without_nccl_the_host_adds_and_says_so),
        cmocka_unit_test(gpus_of_two_processes_have_the_bits_of_one),
        cmocka_unit_test(nccl_adds_up_what_each_process_sends),
        cmocka_unit_test(a_call_of_cuda_that_fails_ends_the_fit_with_its_last_step),
        cmocka_unit_test(a_gpu_that_fails_for_good_ends_the_fit_with_its_last_step),
        cmocka_unit_test(a_call_of_nccl_that_fails_ends_the_fit_with_its_last_step),
        cmocka_unit_test(a_call_of_another_library_that_fails_does_so_too),
    };
    alarm(LONGEST); /* a fit that waits for ever fails */
    return cmocka_run_group_tests(tests, start, NULL);
}
