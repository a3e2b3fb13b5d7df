/* Works that must have the same bits however they are run: models, ends of data, optimizers, types;
 * and what a fit of them leaves, compared bit by bit. */
#ifndef KEEL_TESTS_REPRODUCIBLE_WORKS_H
#define KEEL_TESTS_REPRODUCIBLE_WORKS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "keel/keel.h"
#include "keel/process_group.h"
#include "made_multi.h"
#include "model/model.h"
#include "model/parts.h"
#include "must.h"

enum { ROWS = 75, SIDE = 9, CLASSES = 5, GOING_ON = 15 };
static float images[ROWS * SIDE * SIDE * 3], labels[ROWS], weights[ROWS];

static int start(void **unused)
{
    (void)unused;
    uint32_t state = 7;
    for (int i = 0; i < ROWS * SIDE * SIDE * 3; i++) {
        state = state * 1664525u + 1013904223u;
        images[i] = (float)(state >> 8) / 8388608.0f - 1;
    }
    for (int i = 0; i < ROWS; i++) {
        labels[i] = (float)(i * 7 % CLASSES);
        weights[i] = i % 9 == 4 ? 0 : 1 + (float)(i % 4) / 3;
    }
    return 0;
}

/* ---- models ---------------------------------------------------------------------------------- */

static keel_symbol conv(keel_model *m, keel_symbol x, int filters, int size, const char *name)
{
    return must_call(m, "Conv2D",
                     KEEL_ARGS(KEEL_ARG_INT("filters", filters), KEEL_ARG_INT("kernel_size", size),
                               KEEL_ARG_STR("padding", "same"), KEEL_ARG_STR("name", name)),
                     x);
}

static keel_symbol dense(keel_model *m, keel_symbol x, int units, const char *activation)
{
    return must_call(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", units), KEEL_ARG_STR("activation", activation),
                  KEEL_ARG_JSON("kernel_regularizer",
                                "{\"class_name\": \"L2\", \"config\": {\"l2\": 0.01}}")),
        x);
}

/* Convolutions of both kinds, statistics of the batch, dropout; one layer is called twice. */
static keel_symbol convolutions(keel_model *m)
{
    keel_symbol x, pair[2];
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "BatchNormalization", NULL, conv(m, x, 8, 5, "first"));
    x = must_call(m, "ReLU", NULL, x);
    pair[0] = must_call(m, "ReLU", NULL, conv(m, x, 8, 3, "shared"));
    must(keel_model_call_again(m, "shared", &pair[0], 1, &pair[1]));
    must(keel_model_call(m, "Add", NULL, pair, 2, &x));
    x = must_call(m, "DepthwiseConv2D", KEEL_ARGS(KEEL_ARG_INT("kernel_size", 3)), x);
    x = must_call(m, "BatchNormalization", NULL, conv(m, x, 32, 1, "wide"));
    x = must_call(m, "MaxPooling2D", NULL, must_call(m, "ReLU", NULL, x));
    x = must_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.3)), x);
    return dense(m, must_call(m, "Flatten", NULL, x), CLASSES, "softmax");
}

/* Dense layers of rows and of places. */
static keel_symbol products(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = dense(m, x, 24, "relu");
    x = dense(m, must_call(m, "Flatten", NULL, x), 70, "gelu");
    return dense(m, x, CLASSES, "softmax");
}

/* Channels for which there are fast kernels. */
static keel_symbol deep(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "ReLU", NULL, conv(m, x, 64, 3, "wide"));
    x = must_call(m, "ReLU", NULL, conv(m, x, 64, 3, "winograd"));
    x = must_call(m, "BatchNormalization", NULL, conv(m, x, 96, 1, "pointwise"));
    return dense(m, must_call(m, "GlobalAveragePooling2D", NULL, x), CLASSES, "softmax");
}

static keel_model *norm_of(int channels, const char *name)
{
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, name, KEEL_FLOAT32, 3));
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, channels), NULL, &x));
    x = must_call(m, "BatchNormalization", NULL, x);
    must(keel_model_outputs(m, &x, 1));
    return m;
}

/* One layer with statistics of the batch and without, in both orders. */
static keel_symbol both_ways(keel_model *m)
{
    const keel_arg *inference = KEEL_ARGS(KEEL_ARG_BOOL("training", false));
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = conv(m, x, 8, 3, "first");
    must(keel_model_call_model(m, norm_of(8, "fixed"), inference, &x, 1, &x));
    must(keel_model_call_again(m, "fixed", &x, 1, &x));
    x = must_call(m, "ReLU", NULL, conv(m, x, 16, 3, "second"));
    must(keel_model_call_model(m, norm_of(16, "moving"), NULL, &x, 1, &x));
    x = must_call(m, "ReLU", NULL, x);
    must(keel_model_call_again(m, "moving", &x, 1, &x));
    return dense(m, must_call(m, "Flatten", NULL, x), CLASSES, "softmax");
}

/* Steps of which some do not count, dropped inputs and states, by kernels and by references. */
static keel_symbol over_time(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "Reshape", KEEL_ARGS(KEEL_ARG_JSON("target_shape", "[9, 27]")), x);
    x = must_call(m, "Masking", NULL, must_call(m, "ReLU", NULL, x));
    x = must_call(m, "LSTM",
                  KEEL_ARGS(KEEL_ARG_INT("units", 19), KEEL_ARG_BOOL("return_sequences", true),
                            KEEL_ARG_FLOAT("dropout", 0.25)),
                  x);
    x = must_call(m, "GRU",
                  KEEL_ARGS(KEEL_ARG_INT("units", 18), KEEL_ARG_BOOL("return_sequences", true),
                            KEEL_ARG_BOOL("go_backwards", true)),
                  x);
    x = must_call(m, "LSTM",
                  KEEL_ARGS(KEEL_ARG_INT("units", 5), KEEL_ARG_BOOL("return_sequences", true),
                            KEEL_ARG_FLOAT("recurrent_dropout", 0.5)),
                  x);
    x = must_call(m, "SimpleRNN", KEEL_ARGS(KEEL_ARG_INT("units", 17)), x);
    return dense(m, x, CLASSES, "softmax");
}

/* Rows of a table, of which most are not asked for. */
static keel_symbol table(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "Discretization",
                  KEEL_ARGS(KEEL_ARG_JSON("bin_boundaries", "[-0.9, -0.5, 0.1, 0.3, 0.8, 5, 6]")),
                  x);
    x = must_call(m, "Flatten", NULL, x);
    x = must_call(m, "Embedding",
                  KEEL_ARGS(KEEL_ARG_INT("input_dim", 4000), KEEL_ARG_INT("output_dim", 6)), x);
    x = must_call(m, "GlobalAveragePooling1D", NULL, x);
    return dense(m, x, CLASSES, "softmax");
}

/* Scores in several blocks, some of their weights dropped. */
static keel_symbol attention(keel_model *m)
{
    keel_symbol x, y;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "Reshape", KEEL_ARGS(KEEL_ARG_JSON("target_shape", "[243, 1]")),
                  must_call(m, "Flatten", NULL, x));
    must(keel_model_call(m, "MultiHeadAttention",
                         KEEL_ARGS(KEEL_ARG_INT("num_heads", 2), KEEL_ARG_INT("key_dim", 5),
                                   KEEL_ARG_FLOAT("dropout", 0.25)),
                         (keel_symbol[]){ x, x }, 2, &y));
    return dense(m, must_call(m, "Flatten", NULL, y), CLASSES, "softmax");
}

/* Rows go on from step to step, through a state, a carry and an image of each. */
static keel_symbol going_on(keel_model *m)
{
    const keel_arg *args = KEEL_ARGS(KEEL_ARG_INT("batch_size", GOING_ON));
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), args, &x));
    x = must_call(m, "Reshape", KEEL_ARGS(KEEL_ARG_JSON("target_shape", "[3, 27, 3]")), x);
    x = must_call(m, "ConvLSTM1D",
                  KEEL_ARGS(KEEL_ARG_INT("filters", 2), KEEL_ARG_INT("kernel_size", 3),
                            KEEL_ARG_BOOL("stateful", true),
                            KEEL_ARG_BOOL("return_sequences", true)),
                  x);
    x = must_call(m, "Reshape", KEEL_ARGS(KEEL_ARG_JSON("target_shape", "[3, 50]")), x);
    x = must_call(m, "LSTM",
                  KEEL_ARGS(KEEL_ARG_INT("units", 7), KEEL_ARG_BOOL("stateful", true),
                            KEEL_ARG_BOOL("return_sequences", true)),
                  x);
    x = must_call(m, "GRU", KEEL_ARGS(KEEL_ARG_INT("units", 5), KEEL_ARG_BOOL("stateful", true)),
                  x);
    return dense(m, x, CLASSES, "softmax");
}

typedef struct recipe {
    const char *name;
    keel_symbol (*network)(keel_model *m);
    keel_dtype dtype;
    const char *policy, *optimizer;
    keel_end_of_data end;
    int batch_size, shards;
    bool weighted;
} recipe;

/* Five ends of the data, more shards than rows, shards of one row and of several. */
static const recipe recipes[] = {
    { "convolutions", convolutions, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 32, 16, false },
    { "convolutions, dropped end", convolutions, KEEL_FLOAT32, NULL, "sgd", KEEL_DROP, 37, 16,
      true },
    { "convolutions, carried rows", convolutions, KEEL_FLOAT32, NULL, "adam", KEEL_CARRY, 32, 16,
      false },
    { "convolutions, rows again", convolutions, KEEL_FLOAT64, NULL, "adam", KEEL_WRAP, 24, 16,
      false },
    { "convolutions, full steps", convolutions, KEEL_FLOAT32, "mixed_bfloat16", "adam", KEEL_REFUSE,
      25, 16, false },
    { "convolutions, 23 shards", convolutions, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 40, 23,
      true },
    { "statistics both ways", both_ways, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 32, 16, true },
    { "products", products, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 32, 16, true },
    { "products, small steps", products, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 9, 16, false },
    { "products, norms of weights", products, KEEL_FLOAT32, NULL, "lamb", KEEL_KEEP, 32, 16,
      false },
    { "products, whole weights", products, KEEL_FLOAT32, NULL, "muon", KEEL_KEEP, 32, 16, false },
    { "products, sums of rows and columns", products, KEEL_FLOAT32, NULL, "adafactor", KEEL_KEEP,
      32, 16, false },
    { "products in bfloat16", products, KEEL_FLOAT32, "mixed_bfloat16", "sgd", KEEL_KEEP, 32, 16,
      false },
    { "a table", table, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 32, 16, true },
    { "a table that mostly rests", table, KEEL_FLOAT32, NULL, "sgd", KEEL_KEEP, 32, 16, false },
    { "over time", over_time, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 32, 16, true },
    { "over time in bfloat16", over_time, KEEL_FLOAT32, "mixed_bfloat16", "sgd", KEEL_KEEP, 40, 23,
      false },
    { "rows that go on", going_on, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, GOING_ON, 16, true },
    { "rows that go on in bfloat16", going_on, KEEL_FLOAT32, "mixed_bfloat16", "sgd", KEEL_WRAP,
      GOING_ON, 23, false },
    { "attention", attention, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 32, 16, true },
    { "attention in bfloat16", attention, KEEL_FLOAT32, "mixed_bfloat16", "sgd", KEEL_KEEP, 32, 16,
      false },
    { "deep", deep, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 32, 16, false },
    { "deep in bfloat16", deep, KEEL_FLOAT32, "mixed_bfloat16", "adam", KEEL_KEEP, 64, 32, false },
    { "deep in float16", deep, KEEL_FLOAT32, "mixed_float16", "adam", KEEL_KEEP, 64, 32, false },
};

static inline const recipe *recipe_of(const char *name)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (strcmp(recipes[i].name, name) == 0) return &recipes[i];
    abort();
}

/* ---- a fit and all it leaves ----------------------------------------------------------------- */

typedef struct outcome {
    keel_model *model;
    keel_history history;
    keel_logs logs;
    keel_tensor predicted;
} outcome;

static inline keel_dataset *rows_of(const recipe *r)
{
    static const keel_tensor x = { KEEL_FLOAT32, { 4, { ROWS, SIDE, SIDE, 3 } }, images };
    static const keel_tensor y = { KEEL_FLOAT32, { 1, { ROWS } }, labels };
    static const keel_tensor w = { KEEL_FLOAT32, { 1, { ROWS } }, weights };
    keel_dataset *d;
    must(keel_dataset_from_arrays(&d, &x, &y, r->weighted ? &w : NULL));
    return d;
}

static inline keel_model *model_of(const recipe *r)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, r->dtype, 3));
    keel_symbol out = r->network(m);
    must(keel_model_outputs(m, &out, 1));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { r->optimizer },
                                                .loss = { { "sparse_categorical_crossentropy" } },
                                                .metrics = { { "accuracy" } } }));
    if (r->policy) must(keel_model_set_dtype_policy(m, r->policy));
    return m;
}

/* Fit, evaluate and predict. The first failure ends it. */
static keel_status run_with(outcome *o, const recipe *r, keel_strategy *s, const keel_dataset *d,
                            const keel_callback *const *callbacks)
{
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = r->batch_size, .epochs = 2,
                                       .end = r->end, .callbacks = callbacks };
    keel_status st = keel_strategy_reproducible(s, r->shards);
    if (st >= 0) st = keel_fit(o->model, s, d, &options, &o->history);
    if (st >= 0) st = keel_evaluate(o->model, s, d, &options, &o->logs);
    if (st >= 0) st = keel_predict(o->model, s, d, &options, &o->predicted);
    return st;
}

static inline keel_status end_at(void *context, const keel_moment *now)
{
    int64_t *left = context;
    (void)now;
    return --*left == 0 ? KEEL_END : KEEL_OK;
}

/* Ends a fit after so many steps, which are counted down to 0. */
static inline keel_callback end_after(int64_t *steps)
{
    return (keel_callback){ KEEL_CALLBACK, .on_train_batch_end = end_at, .context = steps };
}

static inline keel_status run_on(outcome *o, const recipe *r, keel_strategy *s,
                                 const keel_dataset *d)
{
    return run_with(o, r, s, d, NULL);
}

static void forget(outcome *o)
{
    keel_tensor_free(&o->predicted);
    keel_history_free(&o->history);
    keel_model_destroy(o->model);
}

static void same(const char *what, const void *a, const void *b, size_t bytes, const recipe *r,
                 const char *how)
{
    if (memcmp(a, b, bytes)) fail_msg("%s: %s of %s differs from one lane's", r->name, what, how);
}

static void same_tensor(const char *what, const keel_tensor *a, const keel_tensor *b,
                        const recipe *r, const char *how)
{
    if (!a->data && !b->data) return; /* a slot that this weight has not */
    same(what, a->data, b->data, (size_t)keel_shape_count(&a->shape) * keel_dtype_size(a->dtype), r,
         how);
}

static void compare_weights(const outcome *a, const outcome *b, const recipe *r, const char *how)
{
    for (int i = 0; i < keel_model_weight_count(a->model); i++) {
        const char *name = keel_model_weight_name(a->model, i);
        keel_tensor u, v;
        must(keel_model_get_weight(a->model, name, &u));
        must(keel_model_get_weight(b->model, name, &v));
        same_tensor(name, &u, &v, r, how);
        keel_tensor_free(&u);
        keel_tensor_free(&v);
    }
    const bool both = keel_model_has_state(a->model) && keel_model_has_state(b->model);
    for (int i = 0; both && i < a->model->compiled.n_state; i++)
        same_tensor("a state of the optimizer", &a->model->compiled.state[i],
                    &b->model->compiled.state[i], r, how);
    for (int i = 0; i < a->model->row_states.n; i++)
        same("a state of rows", a->model->row_states.state[i].data,
             b->model->row_states.state[i].data, (size_t)a->model->row_states.state[i].bytes, r,
             how);
}

static inline void compare(const outcome *a, const outcome *b, const recipe *r, const char *how)
{
    compare_weights(a, b, r, how);
    same("a log of fit", a->history.value, b->history.value,
         (size_t)(a->history.epochs * a->history.count) * sizeof(double), r, how);
    same("a log of evaluate", a->logs.value, b->logs.value, (size_t)a->logs.count * sizeof(double),
         r, how);
    same_tensor("a prediction", &a->predicted, &b->predicted, r, how);
}

#endif
