/* Whole fits on one GPU, which is the emulator's: with our kernels for CUDA where an op has one,
 * the rest on the host on copies. Predictions are those of the host, and no kernel touches memory
 * that is not its own, that nobody has written, or that another thread writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "emulator.h"
#include "device/device.h"
#include "norm_of_one.h"
#include "ops/op.h"
#include "reproducible_works.h"
#include "sweep.h"
#include "train/strategy.h"

extern const keel_kernel *const keel_cuda_kernels[];

static void put_zeros(void *to, int64_t bytes)
{
    void *zeros = calloc(1, (size_t)bytes);
    if (!zeros) abort();
    emu_copy_in(to, zeros, bytes);
    free(zeros);
}

static keel_status allocate(keel_device *d, int64_t bytes, const char *what, void **out)
{
    (void)d;
    *out = emu_allocate(bytes > 0 ? bytes : 1, what);
    if (bytes > 0) put_zeros(*out, bytes);
    return KEEL_OK;
}

static void release(keel_device *d, void *at) /* emu_release_all does it */
{
    (void)d, (void)at;
}

static void copy_in(keel_device *d, keel_device_stream s, void *to, const void *from, int64_t bytes)
{
    (void)d, (void)s;
    emu_copy_in(to, from, bytes);
}

static void copy_out(keel_device *d, keel_device_stream s, void *to, const void *from,
                     int64_t bytes)
{
    (void)d, (void)s;
    emu_copy_out(to, from, bytes);
}

static void clear(keel_device *d, void *at, int64_t bytes)
{
    (void)d;
    put_zeros(at, bytes);
}

static void add(keel_device *d, keel_dtype real, void *to, const void *from, int64_t count)
{
    const size_t bytes = (size_t)count * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes);
    (void)d;
    assert_int_equal(real, KEEL_FLOAT32);
    if (!a || !b) abort();
    emu_copy_out(a, to, (int64_t)bytes);
    emu_copy_out(b, from, (int64_t)bytes);
    for (int64_t i = 0; i < count; i++) a[i] += b[i];
    emu_copy_in(to, a, (int64_t)bytes);
    free(a);
    free(b);
}

static void copy(keel_device *d, void *to, const void *from, int64_t bytes)
{
    void *room = malloc((size_t)bytes);
    (void)d;
    if (!room) abort();
    emu_copy_out(room, from, bytes);
    emu_copy_in(to, room, bytes);
    free(room);
}

extern const char *keel_cuda_fold(void *stream, const keel_device_fold *f);
static void fold(keel_device *d, const keel_device_fold *f)
{
    (void)d;
    assert_null(keel_cuda_fold(NULL, f));
}

extern const char *keel_cuda_move(void *stream, const keel_device_move *m, int n);
static int moves;
static void move(keel_device *d, const keel_device_move *m, int n)
{
    (void)d;
    moves += n;
    assert_null(keel_cuda_move(NULL, m, n));
}

extern const char *keel_cuda_measure(void *stream, const keel_device_measure *m);
static void measure(keel_device *d, const keel_device_measure *m)
{
    (void)d;
    assert_null(keel_cuda_measure(NULL, m));
}

extern const char *keel_cuda_project(void *stream, const keel_device_project *p);
static void project(keel_device *d, const keel_device_project *p)
{
    (void)d;
    assert_null(keel_cuda_project(NULL, p));
}

extern const char *keel_cuda_check(void *stream, const keel_device_check *c);
static void check(keel_device *d, const keel_device_check *c)
{
    (void)d;
    assert_null(keel_cuda_check(NULL, c));
}

static void order(keel_device *d, keel_device_stream s, int event) /* all runs in order */
{
    (void)d, (void)s, (void)event;
}

static keel_status finish(keel_device *d)
{
    const char *fault = emu_report();
    return fault ? keel_fail(KEEL_EDEVICE, "%s: %s", d->name, fault) : emu_data_fault();
}

/* All but attention, whose tiles take the emulator minutes for a line of 243 places; tests of
 * kernels have shorter ones. */
enum { KERNELS_MAX = 256 };
static const keel_kernel *kernels[KERNELS_MAX + 1];

static void choose_kernels(void)
{
    int n = 0;
    for (int i = 0; keel_cuda_kernels[i]; i++) {
        assert_true(n < KERNELS_MAX);
        if (strcmp(keel_cuda_kernels[i]->op->name, "dot_product_attention"))
            kernels[n++] = keel_cuda_kernels[i];
    }
}

static keel_status reach(keel_device *d, keel_device_stream s)
{
    (void)s;
    return finish(d);
}

static const keel_device_type emulated = { .name = "emulated",
                                           .allocate = allocate,
                                           .release = release,
                                           .copy_in = copy_in,
                                           .copy_out = copy_out,
                                           .clear = clear,
                                           .add = add,
                                           .copy = copy,
                                           .move = move,
                                           .measure = measure,
                                           .project = project,
                                           .check = check,
                                           .fold = fold,
                                           .record = order,
                                           .wait = order,
                                           .reach = reach,
                                           .finish = finish,
                                           .kernels = kernels };

static outcome run(const recipe *r, keel_strategy *s)
{
    outcome o = { .model = model_of(r) };
    keel_dataset *d = rows_of(r);
    must(run_on(&o, r, s, d));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    return o;
}

static double at(const keel_tensor *t, int64_t i)
{
    return ((const float *)t->data)[i];
}

/* Numbers are added in other orders, and bfloat16 rounds them to three digits. */
static void predictions_are_those_of_the_host(void **unused)
{
    static const struct {
        const char *name;
        double most;
    } cases[] = { { "convolutions", 1e-3 },  { "statistics both ways", 1e-3 },
                  { "attention", 1e-3 },     { "convolutions, full steps", 0.1 },
                  { "over time", 1e-3 },     { "over time in bfloat16", 0.1 },
                  { "a table", 1e-3 },       { "deep in bfloat16", 0.1 },
                  { "deep in float16", 0.1 } };
    (void)unused;
    choose_kernels();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += (size_t)thin(1, 2, 4)) {
        const recipe *r = recipes;
        while (strcmp(r->name, cases[i].name)) r++;
        keel_device gpu = { .type = &emulated, .name = "cuda:0", .memory = (int64_t)1 << 40 };
        keel_strategy *own, *host;
        must(keel_strategy_create(&host, "cpu:0"));
        must(keel_strategy_create_devices(&own, (keel_device *[]){ &gpu }, 1));
        const int64_t before = emu_launches();
        outcome a = run(r, own), b = run(r, host);
        assert_true(emu_launches() >= before + 10);
        for (int64_t k = 0; k < keel_shape_count(&b.predicted.shape); k++)
            if (!(fabs(at(&a.predicted, k) - at(&b.predicted, k)) <= cases[i].most))
                fail_msg("%s: prediction %d is %.9g, the host's is %.9g", r->name, (int)k,
                         at(&a.predicted, k), at(&b.predicted, k));
        forget(&a);
        forget(&b);
        emu_release_all();
    }
}

static keel_symbol small(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "BatchNormalization", NULL, conv(m, x, 4, 3, "first"));
    x = must_call(m, "Flatten", NULL, must_call(m, "ReLU", NULL, x));
    return dense(m, x, CLASSES, "softmax"); /* with a regularizer */
}

/* The same kernels compute, and the host or a kernel moves. */
static void weights_that_move_on_the_gpu_have_the_bits_of_the_hosts_moves(void **unused)
{
    static const char *const optimizers[] = { "sgd",      "adam",   "adamw", "rmsprop", "adagrad",
                                              "adadelta", "adamax", "nadam", "lion",    "ftrl" };
    (void)unused;
    choose_kernels();
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i += (size_t)thin(1, 3, 5)) {
        const recipe r = { "moves",   small, KEEL_FLOAT32, NULL, optimizers[i],
                           KEEL_KEEP, 32,    16,           true };
        outcome o[2];
        for (int there = 0; there < 2; there++) {
            keel_device_type type = emulated;
            keel_device gpu = { .type = &type, .name = "cuda:0", .memory = (int64_t)1 << 40 };
            keel_strategy *s;
            if (!there) type.move = NULL;
            moves = 0;
            must(keel_strategy_create_devices(&s, (keel_device *[]){ &gpu }, 1));
            o[there] = run(&r, s);
            assert_true((moves > 0) == (there > 0));
            emu_release_all();
        }
        compare(&o[0], &o[1], &r, optimizers[i]);
        forget(&o[0]);
        forget(&o[1]);
    }
}

static void a_norm_of_one_number_behind_a_sum_moves_no_gamma(void **unused)
{
    keel_device gpu = { .type = &emulated, .name = "cuda:0", .memory = (int64_t)1 << 40 };
    keel_strategy *s;
    (void)unused;
    choose_kernels();
    must(keel_strategy_create_devices(&s, (keel_device *[]){ &gpu }, 1));
    const int64_t before = emu_launches();
    norm_of_one_check(s, "on a GPU");
    assert_true(emu_launches() > before);
    keel_strategy_destroy(s);
    emu_release_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_are_those_of_the_host),
        cmocka_unit_test(weights_that_move_on_the_gpu_have_the_bits_of_the_hosts_moves),
        cmocka_unit_test(a_norm_of_one_number_behind_a_sum_moves_no_gamma),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
