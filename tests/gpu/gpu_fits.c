/* Whole fits on one GPU that is divided into 1 to 4 devices: the bits of one, and the numbers of
 * the host; and after many fits the GPU has as much memory as before. For tools/check_gpu.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>
#include "reproducible_works.h"
#include "device/cuda_plugin.h"
#include "train/strategy.h"

extern const keel_cuda_plugin keel_cuda;

enum { DEVICES = 4 };

/* What a fit leaves; on the host if devices is 0. */
static outcome run(const recipe *r, int devices)
{
    outcome o = { .model = model_of(r) };
    keel_device *gpu[DEVICES];
    keel_strategy *s;
    keel_dataset *d = rows_of(r);
    for (int i = 0; i < devices; i++) must(keel_cuda.open(&gpu[i], 0));
    if (devices)
        must(keel_strategy_create_devices(&s, gpu, devices));
    else
        must(keel_strategy_create(&s, "cpu:0"));
    must(run_on(&o, r, s, d));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    for (int i = 0; i < devices; i++) gpu[i]->type->close(gpu[i]);
    return o;
}

static void bits_do_not_depend_on_how_many_devices(void **state)
{
    const recipe *r = *state;
    outcome one = run(r, 1);
    for (int n = 1; n <= DEVICES; n++) {
        char how[48];
        outcome many = run(r, n);
        snprintf(how, sizeof how, "%d logical devices", n);
        compare(&one, &many, r, how);
        forget(&many);
    }
    forget(&one);
}

static double at(const keel_tensor *t, int64_t i)
{
    return t->dtype == KEEL_FLOAT64 ? ((const double *)t->data)[i] : ((const float *)t->data)[i];
}

/* Numbers are added in other orders, and bfloat16 rounds them to three digits. */
static void numbers_are_those_of_the_host(void **state)
{
    const recipe *r = *state;
    const double most = r->policy ? 0.2 : r->dtype == KEEL_FLOAT64 ? 1e-9 : 2e-3;
    outcome host = run(r, 0), gpu = run(r, 1);
    for (int64_t k = 0; k < keel_shape_count(&host.predicted.shape); k++)
        if (!(fabs(at(&host.predicted, k) - at(&gpu.predicted, k)) <= most))
            fail_msg("%s: prediction %d is %.9g, the host's is %.9g", r->name, (int)k,
                     at(&gpu.predicted, k), at(&host.predicted, k));
    forget(&host);
    forget(&gpu);
}

static size_t free_bytes(void)
{
    size_t left = 0, all = 0;
    assert_int_equal(cudaMemGetInfo(&left, &all), cudaSuccess);
    return left;
}

static void no_fit_keeps_memory(void **unused)
{
    const char *const given = getenv("KEEL_GPU_FITS");
    const int fits = given ? atoi(given) : 1000;
    outcome first = run(&recipes[0], 2); /* CUDA loads the kernels then */
    forget(&first);
    const size_t before = free_bytes();
    (void)unused;
    for (int i = 0; i < fits; i++) {
        outcome o = run(&recipes[0], 2);
        forget(&o);
    }
    if (free_bytes() < before)
        fail_msg("%zu bytes of the GPU are gone after %d fits", before - free_bytes(), fits);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static keel_symbol wide(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = conv(m, x, 512, 3, "conv");
    x = must_call(m, "Flatten", NULL, x);
    x = dense(m, dense(m, x, 4096, "relu"), 4096, "relu");
    return dense(m, x, CLASSES, "softmax");
}

static keel_status see_memory(void *context, const keel_moment *now)
{
    size_t *left = context;
    (void)now;
    *left = free_bytes();
    return KEEL_OK;
}

/* With arenas so large that it does not matter in which pieces CUDA gives them out. */
static void cuda_shows_what_was_planned(void **unused)
{
    const recipe r = { "wide", wide, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 32, 16, false };
    size_t left = 0;
    const keel_callback sees = { KEEL_CALLBACK, .context = &left,
                                 .on_train_batch_end = see_memory };
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r.batch_size,
                                       .callbacks = KEEL_CALLBACKS(&sees) };
    keel_model *m = model_of(&r);
    keel_dataset *d = rows_of(&r);
    keel_device *gpu;
    keel_strategy *s;
    keel_plan p;
    (void)unused;
    must(keel_cuda.open(&gpu, 0));
    must(keel_strategy_create_devices(&s, &gpu, 1));
    const int64_t before = gpu->memory;
    must(keel_plan_make(&p, m, s, ROWS, r.batch_size, KEEL_KEEP, NULL));
    must(keel_fit(m, s, d, &options, NULL));
    const int64_t taken = before - (int64_t)left;
    for (int i = 0; i < p.n_part; i++)
        print_message("%s: %lld\n", p.part[i].what, (long long)p.part[i].bytes);
    if (llabs(taken - p.device_bytes[0]) > p.device_bytes[0] / 50)
        fail_msg("%lld bytes are planned, CUDA shows %lld", (long long)p.device_bytes[0],
                 (long long)taken);
    keel_plan_free(&p);
    keel_strategy_destroy(s);
    gpu->type->close(gpu);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

enum { RECIPES = sizeof recipes / sizeof *recipes };

int main(void)
{
    static char names[2 * RECIPES][120];
    struct CMUnitTest tests[2 * RECIPES + 2] = { 0 };
    int n = 0;
    for (int i = 0; i < RECIPES; i++)
        for (int host = 0; host < 2; host++, n++) {
            snprintf(names[n], sizeof *names, "%s: %s", recipes[i].name,
                     host ? "the host's numbers" : "the bits of one device");
            tests[n] = (struct CMUnitTest){ names[n],
                                            host ? numbers_are_those_of_the_host
                                                 : bits_do_not_depend_on_how_many_devices,
                                            NULL, NULL, (void *)(uintptr_t)&recipes[i] };
        }
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(no_fit_keeps_memory);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(cuda_shows_what_was_planned);
    if (getenv("KEEL_TEST_FILTER")) cmocka_set_test_filter(getenv("KEEL_TEST_FILTER"));
    return _cmocka_run_group_tests("fits", tests, (size_t)n, start, NULL);
}
