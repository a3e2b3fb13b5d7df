/* After step 1 Keel allocates nothing. Every malloc of the process is counted, by wrapping it; only
 * those that oneDNN makes inside an execute are there, and they are printed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "keel/keel.h"
#include "must.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WRAPPED 0 /* a sanitizer has malloc for itself */
#else
#define WRAPPED 1
#endif

static atomic_int counting, ours, vendors;

#if WRAPPED
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

/* oneDNN is the only C++ in the process, so what comes through libstdc++ is its. */
static void count(const void *caller)
{
    static _Thread_local int busy;
    Dl_info where;
    if (!atomic_load(&counting) || busy) return;
    busy = 1;
    const int known = dladdr(caller, &where) && where.dli_fname;
    if (known && (strstr(where.dli_fname, "libdnnl") || strstr(where.dli_fname, "libstdc++") ||
                  strstr(where.dli_fname, "libgomp")))
        atomic_fetch_add(&vendors, 1);
    else
        atomic_fetch_add(&ours, 1);
    busy = 0;
}

void *malloc(size_t n)
{
    count(__builtin_return_address(0));
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    count(__builtin_return_address(0));
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    count(__builtin_return_address(0));
    *out = __libc_memalign(alignment, n);
    return *out ? 0 : 12;
}
#endif

enum { ROWS = 40 * 64 + 7, FEATURES = 8 * 8 * 3 };
static float x[ROWS * FEATURES], y[ROWS];

/* Counting begins after the first step and ends before the last one of the fit. */
static keel_status watch_step(void *context, const keel_moment *at)
{
    (void)context;
    if (at->epoch == 0 && at->step == 1) atomic_store(&counting, 1);
    return KEEL_OK;
}

static keel_status watch_epoch(void *context, const keel_moment *at)
{
    (void)context;
    if (at->epoch == 1) atomic_store(&counting, 0);
    return KEEL_OK;
}

static keel_model *network(bool image)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    if (image) {
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 8, 8, 3))));
        must(keel_model_add(m, "Conv2D",
                            KEEL_ARGS(KEEL_ARG_INT("filters", 8), KEEL_ARG_INT("kernel_size", 3),
                                      KEEL_ARG_BOOL("use_bias", false))));
        must(keel_model_add(m, "BatchNormalization", NULL));
        must(keel_model_add(m, "ReLU", NULL));
        must(keel_model_add(m, "MaxPooling2D", NULL));
        must(keel_model_add(m, "Flatten", NULL));
        must(keel_model_add(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.2))));
    } else {
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
        must(keel_model_add(
            m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 32), KEEL_ARG_STR("activation", "relu"))));
    }
    must(keel_model_add(
        m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 10), KEEL_ARG_STR("activation", "softmax"))));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "Adam" },
                                                .loss = { { "sparse_categorical_crossentropy" } },
                                                .metrics = { { "accuracy" } } }));
    return m;
}

static void fit(bool image, const char *without, bool validation)
{
    keel_model *m = network(image);
    keel_strategy *s;
    keel_dataset *d;
    const keel_tensor tx = { KEEL_FLOAT32,
                             image ? (keel_shape){ 4, { ROWS, 8, 8, 3 } }
                                   : (keel_shape){ 2, { ROWS, FEATURES } },
                             x };
    const keel_tensor ty = { KEEL_FLOAT32, { 1, { ROWS } }, y };
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    must(keel_strategy_create(&s, "cpu:0-2"));
    atomic_store(&ours, 0);
    atomic_store(&vendors, 0);
    must(keel_fit(
        m, s, d,
        &(keel_fit_options){
            KEEL_FIT_OPTIONS, .batch_size = 64, .epochs = 2, .validation = validation ? d : NULL,
            .without_kernels = without,
            .callbacks = KEEL_CALLBACKS(&(keel_callback){
                KEEL_CALLBACK, .on_train_batch_end = watch_step, .on_epoch_end = watch_epoch }) },
        NULL));
    atomic_store(&counting, 0);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void steps_after_the_first_allocate_nothing(void **unused)
{
    (void)unused;
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)(i % 251) / 251;
    for (int i = 0; i < ROWS; i++) y[i] = (float)(i % 10);
    for (int image = 0; image < 2; image++)
        for (int validation = 0; validation < 2; validation++) {
            fit(image, "dnnl", validation);
            assert_int_equal(atomic_load(&ours), 0);
            assert_int_equal(atomic_load(&vendors), 0);
            fit(image, NULL, validation);
            print_message("%s%s: %d allocations of oneDNN in %d steps\n", image ? "image" : "dense",
                          validation ? ", validated" : "", atomic_load(&vendors), 2 * 41 - 1);
            assert_int_equal(atomic_load(&ours), 0);
        }
}

/* The count above would be worth nothing if the wrapper missed a malloc. */
static void the_count_sees_an_allocation(void **unused)
{
    (void)unused;
    if (!WRAPPED) return;
    atomic_store(&ours, 0);
    atomic_store(&counting, 1);
    void *volatile p = malloc(10);
    atomic_store(&counting, 0);
    free(p);
    assert_int_equal(atomic_load(&ours), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_count_sees_an_allocation),
        cmocka_unit_test(steps_after_the_first_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
