/* Trainings of small networks on any number of rows, batch size and lanes, whose weights must be
 * those of one lane. */
#ifndef EXACT_TRAININGS_H
#define EXACT_TRAININGS_H
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
#include "must.h"
#include "sweep.h"

enum { ROWS = 104, LANES = 8, FEATURES = 12, SIDE = 6, CLASSES = 5 };
#define TOLERANCE 1e-5

/* As many lanes as the index says; then some that take two cores in turn, so that the rows of a
 * core lie apart in a step. */
static const char *const devices[] = { NULL,
                                       "cpu:0",
                                       "cpu:0-1",
                                       "cpu:0-2",
                                       "cpu:0-3",
                                       "cpu:0-4",
                                       "cpu:0-5",
                                       "cpu:0-6",
                                       "cpu:0-7",
                                       "cpu:0,cpu:1,cpu:0",
                                       "cpu:0,cpu:1,cpu:0,cpu:1,cpu:0" };
enum { STRATEGIES = sizeof devices / sizeof *devices - 1 };
static keel_strategy *strategy[STRATEGIES + 1];
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
    for (int i = 1; i <= STRATEGIES; i++)
        if (keel_strategy_create(&strategy[i], devices[i]) < 0) return -1;
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
    for (int i = 1; i <= STRATEGIES; i++) keel_strategy_destroy(strategy[i]);
    return 0;
}

/* ---- what is trained --------------------------------------------------------------------------
 */

/* DEEP has the channels that fast kernels ask for, Winograd's among them. */
typedef enum network {
    DENSE,
    CONVOLUTION,
    DEPTHWISE,
    RESIDUAL,
    CONCATENATED,
    DEEP,
    DEEP_BFLOAT16,
    NETWORKS
} network;
static const char *const network_name[] = { "dense",        "convolution",  "depthwise",
                                            "residual",     "concatenated", "deep",
                                            "deep bfloat16" };

enum {
    BATCH_NORM = 1,
    DROPOUT = 2,
    SAMPLE_WEIGHT = 4,
    CLASS_WEIGHT = 8,
    L2 = 16,
    ADAMW = 32,
    ALL = 64
};

typedef struct recipe {
    network network;
    int with; /* the sum of some of the above */
} recipe;

static void say(char *out, size_t size, const recipe *r)
{
    static const char *const word[] = { "BatchNorm",     "Dropout", "sample weights",
                                        "class weights", "L2",      "AdamW" };
    size_t n = (size_t)snprintf(out, size, "%s", network_name[r->network]);
    for (int i = 0; i < 6; i++)
        if (r->with >> i & 1) n += (size_t)snprintf(out + n, size - n, ", %s", word[i]);
}

/* A layer with weights and what follows it: no bias where BatchNorm takes any constant away. */
static keel_symbol block(keel_model *m, const recipe *r, const char *layer, keel_symbol x)
{
    const bool bn = r->with & BATCH_NORM;
    const char *l2 = r->with & L2 ? "{\"class_name\": \"L2\", \"config\": {\"l2\": 0.01}}" : "null";
    if (!strcmp(layer, "Dense"))
        x = must_call(m, layer,
                      KEEL_ARGS(KEEL_ARG_INT("units", 9), KEEL_ARG_BOOL("use_bias", !bn),
                                KEEL_ARG_JSON("activity_regularizer", l2),
                                KEEL_ARG_JSON("kernel_regularizer", l2)),
                      x);
    else if (!strcmp(layer, "Conv2D"))
        x = must_call(m, layer,
                      KEEL_ARGS(KEEL_ARG_INT("filters", r->network < DEEP ? 4 : 32),
                                KEEL_ARG_INT("kernel_size", 3), KEEL_ARG_STR("padding", "same"),
                                KEEL_ARG_BOOL("use_bias", !bn),
                                KEEL_ARG_JSON("kernel_regularizer", l2),
                                KEEL_ARG_JSON("activity_regularizer", l2)),
                      x);
    else
        x = must_call(m, layer,
                      KEEL_ARGS(KEEL_ARG_INT("kernel_size", 3), KEEL_ARG_BOOL("use_bias", !bn),
                                KEEL_ARG_JSON("depthwise_regularizer", l2)),
                      x);
    if (bn) x = must_call(m, "BatchNormalization", KEEL_ARGS(KEEL_ARG_FLOAT("momentum", 0.9)), x);
    return must_call(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "relu")), x);
}

static keel_symbol body(keel_model *m, const recipe *r, keel_symbol x)
{
    keel_symbol pair[2];
    switch (r->network) {
    case DENSE:
        return block(m, r, "Dense", x);
    case CONVOLUTION:
        return block(m, r, "Conv2D", x);
    case DEPTHWISE:
        return block(m, r, "DepthwiseConv2D", block(m, r, "Conv2D", x));
    case DEEP:
    case DEEP_BFLOAT16:
        return block(m, r, "Conv2D", block(m, r, "Conv2D", x));
    default:
        pair[0] = block(m, r, "Conv2D", x);
        pair[1] = block(m, r, "Conv2D", r->network == RESIDUAL ? pair[0] : x);
        must(keel_model_call(m, r->network == RESIDUAL ? "Add" : "Concatenate", NULL, pair, 2, &x));
        return x;
    }
}

static keel_model *build(const recipe *r)
{
    keel_model *m;
    keel_symbol x;
    const bool adamw = r->with & ADAMW;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 7));
    must(keel_model_input(m, r->network == DENSE ? KEEL_DIMS(FEATURES) : KEEL_DIMS(SIDE, SIDE, 3),
                          NULL, &x));
    x = body(m, r, x);
    if (r->network != DENSE) x = must_call(m, "GlobalAveragePooling2D", NULL, x);
    if (r->with & DROPOUT) x = must_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.3)), x);
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax")),
                  x);
    must(keel_model_outputs(m, &x, 1));
    if (r->network == DEEP_BFLOAT16) must(keel_model_set_dtype_policy(m, "mixed_bfloat16"));
    must(keel_model_compile(
        m, &(keel_compile){
               KEEL_COMPILE,
               .optimizer = { adamw ? "AdamW" : "SGD",
                              KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", adamw ? 0.001 : 0.05)) },
               .loss = { { "sparse_categorical_crossentropy" } }, .metrics = { { "accuracy" } } }));
    return m;
}

static keel_dataset *rows_of(const recipe *r, int64_t n)
{
    keel_dataset *d;
    const keel_tensor x = { KEEL_FLOAT32,
                            r->network != DENSE ? (keel_shape){ 4, { n, SIDE, SIDE, 3 } }
                                                : (keel_shape){ 2, { n, FEATURES } },
                            r->network != DENSE ? x_image : x_flat };
    const keel_tensor y = { KEEL_FLOAT32, { 1, { n } }, y_label };
    const keel_tensor w = { KEEL_FLOAT32, { 1, { n } }, weight };
    must(keel_dataset_from_arrays(&d, &x, &y, r->with & SAMPLE_WEIGHT ? &w : NULL));
    return d;
}

static keel_model *train(const recipe *r, int64_t n, int64_t batch, int on, keel_history *h)
{
    static const double class_weight[CLASSES] = { 1, 2, 0.5, 1, 3 };
    keel_model *m = build(r);
    keel_dataset *d = rows_of(r, n);
    const keel_fit_options o = { KEEL_FIT_OPTIONS,
                                 .batch_size = batch,
                                 .epochs = 2,
                                 .seed = 3,
                                 .class_weight = r->with & CLASS_WEIGHT ? class_weight : NULL,
                                 .class_weight_count = CLASSES };
    must(keel_fit(m, strategy[on], d, &o, h));
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

static void sweep(const recipe *r, int64_t n, int64_t batch)
{
    keel_model *one = train(r, n, batch, 1, NULL);
    for (int on = 2; on <= STRATEGIES; on++) {
        /* in turn, gradients are added in another order, and bfloat16 rounds what differs apart */
        if (r->network == DEEP_BFLOAT16 && on > LANES) continue;
        keel_history h;
        keel_model *m = train(r, n, batch, on, &h);
        const double off = difference(m, one);
        if (!(off <= TOLERANCE)) {
            char what[128];
            say(what, sizeof what, r);
            fail_msg("%s: %d rows, batch %d, on %s: weights are off by %.2g", what, (int)n,
                     (int)batch, devices[on], off);
        }
        assert_int_equal(h.rows, 2 * n);
        keel_history_free(&h);
        keel_model_destroy(m);
    }
    keel_model_destroy(one);
}

#endif
