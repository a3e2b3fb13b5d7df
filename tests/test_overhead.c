/* What a step costs beside arithmetic: the two-layer network so small that its products take next
 * to nothing, so that the time between two steps is the feed, the calls, the meetings, the commit
 * and the callback. The fastest hundred steps count, since other programs take their share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>
#include "keel/keel.h"
#include "must.h"

enum { ROWS = 16 * 2000, FEATURES = 4, CLASSES = 2, STRETCH = 100 };
static const double LIMIT_US = 20;
static float x[ROWS * FEATURES], y[ROWS];

typedef struct watch {
    double begin, fastest;
} watch;

static keel_status tell(void *context, const keel_moment *p)
{
    watch *w = context;
    struct timespec t;
    if (p->step % STRETCH) return KEEL_OK;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    if (w->begin > 0 && p->step > STRETCH && (w->fastest == 0 || now - w->begin < w->fastest))
        w->fastest = now - w->begin;
    w->begin = now;
    return KEEL_OK;
}

static double microseconds_a_step(const char *devices, const char *optimizer)
{
    keel_model *m;
    keel_strategy *s;
    keel_dataset *d;
    watch w = { 0 };
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { ROWS, FEATURES } }, x };
    const keel_tensor ty = { KEEL_FLOAT32, { 1, { ROWS } }, y };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    must(keel_model_add(m, "Dense",
                        KEEL_ARGS(KEEL_ARG_INT("units", 4), KEEL_ARG_STR("activation", "relu"))));
    must(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax"))));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { optimizer },
                                                .loss = { { "sparse_categorical_crossentropy" } },
                                                .metrics = { { "accuracy" } } }));
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    must(keel_strategy_create(&s, devices));
    must(keel_fit(
        m, s, d,
        &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 16, .epochs = 3,
                             .callbacks = KEEL_CALLBACKS(&(keel_callback){
                                 KEEL_CALLBACK, .context = &w, .on_train_batch_end = tell }) },
        NULL));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    return w.fastest / STRETCH * 1e6;
}

static void a_step_of_the_two_layer_network_costs_less_than_20_us(void **unused)
{
    (void)unused;
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)(i % 17) / 17;
    for (int i = 0; i < ROWS; i++) y[i] = (float)(i % CLASSES);
    const char *const devices[] = { "cpu:0", "cpu:0-3", "cpu" };
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        const double sgd = microseconds_a_step(devices[i], "sgd");
        const double adam = microseconds_a_step(devices[i], "adam");
        print_message("%-8s %5.2f us a step with SGD, %5.2f with Adam\n", devices[i], sgd, adam);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        if (i == 0) assert_true(sgd < LIMIT_US && adam < LIMIT_US);
#endif
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_the_two_layer_network_costs_less_than_20_us),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
