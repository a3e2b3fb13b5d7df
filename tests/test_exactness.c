/* The answer does not depend on the number of devices: weights after two epochs on L lanes equal
 * one lane's, for every number of rows, batch size and lanes, uneven tails and fewer rows than
 * lanes included. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "keel/keel.h"

enum { ROWS = 104, LANES = 8, FEATURES = 12, SIDE = 6, CLASSES = 5 };
#define TOLERANCE 1e-5

static keel_strategy *strategy[LANES + 1];
static float x_flat[ROWS * FEATURES], x_image[ROWS * SIDE * SIDE * 3], y_label[ROWS], weight[ROWS];

static uint32_t state = 12345;
static float noise(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608.0f - 1;
}

static int start(void **unused)
{
    (void)unused;
    char devices[32];
    for (int i = 1; i <= LANES; i++) {
        snprintf(devices, sizeof devices, i == 1 ? "cpu:0" : "cpu:0-%d", i - 1);
        if (keel_strategy_create(&strategy[i], devices) < 0) return -1;
    }
    for (int i = 0; i < ROWS * FEATURES; i++) x_flat[i] = noise();
    for (int i = 0; i < ROWS * SIDE * SIDE * 3; i++) x_image[i] = noise();
    for (int i = 0; i < ROWS; i++) {
        y_label[i] = (float)(int)((noise() + 1) * 0.5f * CLASSES);
        weight[i] = i % 7 == 3 ? 0 : 1 + noise() * 0.5f;
    }
    return 0;
}

static int finish(void **unused)
{
    (void)unused;
    for (int i = 1; i <= LANES; i++) keel_strategy_destroy(strategy[i]);
    return 0;
}

/* ---- what is trained ----------------------------------------------------------------------------
 */

typedef struct recipe {
    const char *what;
    bool image, batch_norm, dropout, sample_weight, class_weight, l2, adamw;
} recipe;

static void must(keel_status s)
{
    if (s < 0) fail_msg("%s", keel_error());
}

static keel_model *build(const recipe *r)
{
    keel_model *m;
    const char *l2 = r->l2 ? "{\"class_name\": \"L2\", \"config\": {\"l2\": 0.01}}" : "null";
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 7));
    if (r->image) {
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", SIDE, SIDE, 3))));
        must(keel_model_add(m, "Conv2D",
                            KEEL_ARGS(KEEL_ARG_INT("filters", 4), KEEL_ARG_INT("kernel_size", 3),
                                      KEEL_ARG_BOOL("use_bias", !r->batch_norm),
                                      KEEL_ARG_JSON("kernel_regularizer", l2))));
    } else {
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
        must(keel_model_add(m, "Dense",
                            KEEL_ARGS(KEEL_ARG_INT("units", 9),
                                      KEEL_ARG_BOOL("use_bias", !r->batch_norm),
                                      KEEL_ARG_JSON("kernel_regularizer", l2))));
    }
    if (r->batch_norm)
        must(keel_model_add(m, "BatchNormalization", KEEL_ARGS(KEEL_ARG_FLOAT("momentum", 0.9))));
    must(keel_model_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "relu"))));
    if (r->image) must(keel_model_add(m, "GlobalAveragePooling2D", NULL));
    if (r->dropout) must(keel_model_add(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.3))));
    must(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax"))));
    must(keel_model_compile(
        m, &(keel_compile){
               KEEL_COMPILE,
               .optimizer = { r->adamw ? "AdamW" : "SGD",
                              KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", r->adamw ? 0.001 : 0.05)) },
               .loss = { { "sparse_categorical_crossentropy" } }, .metrics = { { "accuracy" } } }));
    return m;
}

static keel_dataset *rows_of(const recipe *r, int64_t n)
{
    keel_dataset *d;
    const keel_tensor x = { KEEL_FLOAT32,
                            r->image ? (keel_shape){ 4, { n, SIDE, SIDE, 3 } }
                                     : (keel_shape){ 2, { n, FEATURES } },
                            r->image ? x_image : x_flat };
    const keel_tensor y = { KEEL_FLOAT32, { 1, { n } }, y_label };
    const keel_tensor w = { KEEL_FLOAT32, { 1, { n } }, weight };
    must(keel_dataset_from_arrays(&d, &x, &y, r->sample_weight ? &w : NULL));
    return d;
}

static keel_model *train(const recipe *r, int64_t n, int64_t batch, int lanes, keel_history *h)
{
    static const double class_weight[CLASSES] = { 1, 2, 0.5, 1, 3 };
    keel_model *m = build(r);
    keel_dataset *d = rows_of(r, n);
    const keel_fit_options o = { KEEL_FIT_OPTIONS,
                                 .batch_size = batch,
                                 .epochs = 2,
                                 .seed = 3,
                                 .class_weight = r->class_weight ? class_weight : NULL,
                                 .class_weight_count = CLASSES };
    must(keel_fit(m, strategy[lanes], d, &o, h));
    keel_dataset_destroy(d);
    return m;
}

/* The largest |a - b| over the largest weight of that tensor, over all tensors. */
static double difference(const keel_model *a, const keel_model *b)
{
    double worst = 0;
    for (int i = 0; i < keel_model_weight_count(a); i++) {
        keel_tensor p, q;
        must(keel_model_get_weight(a, keel_model_weight_name(a, i), &p));
        must(keel_model_get_weight(b, keel_model_weight_name(a, i), &q));
        int64_t count = 1;
        for (int k = 0; k < p.shape.rank; k++) count *= p.shape.dim[k];
        double most = 1e-30, off = 0;
        for (int64_t k = 0; k < count; k++) {
            const double u = ((float *)p.data)[k], v = ((float *)q.data)[k];
            if (!isfinite(u) || !isfinite(v)) off = INFINITY;
            most = fmax(most, fabs(v));
            off = fmax(off, fabs(u - v));
        }
        worst = fmax(worst, off / most);
        keel_tensor_free(&p);
        keel_tensor_free(&q);
    }
    return worst;
}

static void compare(const recipe *r, int64_t n, int64_t batch, int lanes, const keel_model *one)
{
    keel_history h;
    keel_model *m = train(r, n, batch, lanes, &h);
    const double off = difference(m, one);
    if (!(off <= TOLERANCE))
        fail_msg("%s: %d rows, batch %d, %d lanes: weights are off by %.2g", r->what, (int)n,
                 (int)batch, lanes, off);
    assert_int_equal(h.rows, 2 * n);
    keel_history_free(&h);
    keel_model_destroy(m);
}

static void sweep(const recipe *r, int64_t n, int64_t batch, int lane_step)
{
    keel_model *one = train(r, n, batch, 1, NULL);
    for (int lanes = 2; lanes <= LANES; lanes += lane_step) compare(r, n, batch, lanes, one);
    keel_model_destroy(one);
}

/* ---- tests --------------------------------------------------------------------------------------
 */

static void every_size_gives_the_weights_of_one_lane(void **unused)
{
    (void)unused;
    const recipe dense = { .what = "dense, SGD" };
    for (int64_t n = 1; n <= ROWS; n++) {
        if (n == 41) n = 96;
        for (int64_t batch = 1; batch <= 17; batch++) sweep(&dense, n, batch, 1);
    }
}

static void every_recipe_gives_the_weights_of_one_lane(void **unused)
{
    (void)unused;
    static const recipe recipes[] = {
        { .what = "dense, AdamW", .adamw = true },
        { .what = "dense, dropout", .dropout = true },
        { .what = "dense, sample weights", .sample_weight = true },
        { .what = "dense, class weights", .class_weight = true },
        { .what = "dense, L2, AdamW", .l2 = true, .adamw = true },
        { .what = "dense, batch norm", .batch_norm = true },
        { .what = "convolution", .image = true },
        { .what = "convolution, batch norm", .image = true, .batch_norm = true },
        { .what = "convolution, all of it",
          .image = true,
          .batch_norm = true,
          .dropout = true,
          .sample_weight = true,
          .class_weight = true,
          .l2 = true },
    };
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        for (int k = 0; k < 12; k++) {
            const int64_t pick = (int64_t)((noise() + 1) * 24.5f);
            const int64_t n = pick < 40 ? pick + 1 : 96 + pick - 40;
            const int64_t batch = 1 + (int64_t)((noise() + 1) * 8.5f);
            sweep(&recipes[i], n, batch, 1);
        }
}

static void a_last_step_of_one_row_through_batch_norm_is_finite(void **unused)
{
    (void)unused;
    const recipe r = { .what = "one row through batch norm", .image = true, .batch_norm = true };
    for (int64_t n = 1; n <= 33; n += 16) sweep(&r, n, 16, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_gives_the_weights_of_one_lane),
        cmocka_unit_test(every_recipe_gives_the_weights_of_one_lane),
        cmocka_unit_test(a_last_step_of_one_row_through_batch_norm_is_finite),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
