/* Runs that are stopped and resumed: models, data and options that have all kinds of state. */
#ifndef KEEL_TESTS_CHECKPOINT_RUNS_H
#define KEEL_TESTS_CHECKPOINT_RUNS_H
#include <stdio.h>
#include <string.h>
#include "model/model.h"
#include "must.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

enum { RUN_ROWS = 51, RUN_FEATURES = 6, RUN_CLASSES = 3, RUN_BATCH = 8, RUN_EPOCHS = 3 };

typedef struct run_case {
    const char *name;
    const char *optimizer;
    const keel_arg *args; /* of the optimizer */
    const char *policy;
    keel_dtype dtype;
    keel_end_of_data end;
    int64_t steps_per_epoch;
    enum {
        RUN_ARRAYS,
        RUN_GENERATOR,
        RUN_ONE_SHOT,
        RUN_SEQUENCE,
        RUN_PIPELINE,  /* by row number */
        RUN_STREAM,    /* a pipeline with a filter */
        RUN_UNBATCHED, /* and one behind a generator */
        RUN_LAYERS,    /* layers change rows by number */
        RUN_BATCHES    /* and batches, which are then a stream */
    } source;
    bool stateful, validation, no_shuffle;
    const char *callback; /* one of Keras's, with its arguments */
} run_case;

static const keel_arg momentum[] = { KEEL_ARG_FLOAT("momentum", 0.9), { 0 } };
static const keel_arg averages[] = { KEEL_ARG_BOOL("use_ema", true),
                                     KEEL_ARG_FLOAT("ema_momentum", 0.9),
                                     KEEL_ARG_INT("gradient_accumulation_steps", 3),
                                     { 0 } };

static const run_case run_cases[] = {
    { .name = "Adam, dropout and BatchNorm", .optimizer = "Adam" },
    { .name = "SGD with momentum, validation",
      .optimizer = "SGD",
      .args = momentum,
      .validation = true },
    { .name = "an average of weights and gradients added up",
      .optimizer = "AdamW",
      .args = averages },
    { .name = "an optimizer with a number of its own", .optimizer = "Nadam" },
    { .name = "float16 with a loss scale", .optimizer = "Adam", .policy = "mixed_float16" },
    { .name = "float64", .optimizer = "Adam", .dtype = KEEL_FLOAT64 },
    { .name = "carried rows", .optimizer = "Adam", .end = KEEL_CARRY },
    { .name = "wrapped rows", .optimizer = "Adam", .end = KEEL_WRAP },
    { .name = "epochs inside the data", .optimizer = "Adam", .steps_per_epoch = 4 },
    { .name = "a stateful layer",
      .optimizer = "Adam",
      .stateful = true,
      .end = KEEL_DROP,
      .no_shuffle = true },
    { .name = "a generator", .optimizer = "Adam", .source = RUN_GENERATOR },
    { .name = "a generator whose epochs begin anywhere",
      .optimizer = "Adam",
      .source = RUN_GENERATOR,
      .steps_per_epoch = 4 },
    { .name = "a generator that carries",
      .optimizer = "Adam",
      .source = RUN_GENERATOR,
      .end = KEEL_CARRY },
    { .name = "a generator without reset",
      .optimizer = "Adam",
      .source = RUN_ONE_SHOT,
      .steps_per_epoch = 2 },
    { .name = "a shuffled sequence", .optimizer = "Adam", .source = RUN_SEQUENCE },
    { .name = "EarlyStopping with the best weights",
      .optimizer = "Adam",
      .validation = true,
      .callback = "EarlyStopping(monitor='val_loss', patience=1, restore_best_weights=True)" },
    { .name = "ReduceLROnPlateau",
      .optimizer = "Adam",
      .callback = "ReduceLROnPlateau(monitor='loss', patience=1, factor=0.5, min_delta=10)" },
    { .name = "SwapEMAWeights",
      .optimizer = "AdamW",
      .args = averages,
      .validation = true,
      .callback = "SwapEMAWeights(swap_on_epoch=True)" },
    { .name = "a pipeline of rows by number", .optimizer = "Adam", .source = RUN_PIPELINE },
    { .name = "a pipeline whose epochs begin anywhere",
      .optimizer = "Adam",
      .source = RUN_PIPELINE,
      .steps_per_epoch = 4 },
    { .name = "a pipeline that is a stream", .optimizer = "Adam", .source = RUN_STREAM },
    { .name = "a stream whose epochs begin anywhere",
      .optimizer = "Adam",
      .source = RUN_STREAM,
      .steps_per_epoch = 4 },
    { .name = "a pipeline behind a generator", .optimizer = "Adam", .source = RUN_UNBATCHED },
    { .name = "a pipeline with layers that draw", .optimizer = "Adam", .source = RUN_LAYERS },
    { .name = "a pipeline with layers behind batches", .optimizer = "Adam", .source = RUN_BATCHES },
};
enum { RUN_CASES = sizeof run_cases / sizeof *run_cases };

typedef struct run_data {
    float x[RUN_ROWS][RUN_FEATURES], y[RUN_ROWS];
    int at, passes;
    keel_dataset *rows, *validation;
} run_data;

static inline void run_fill(run_data *d)
{
    uint32_t seed = 11;
    for (int i = 0; i < RUN_ROWS; i++) {
        d->y[i] = (float)(i * 5 % RUN_CLASSES);
        for (int k = 0; k < RUN_FEATURES; k++) {
            seed = seed * 1664525u + 1013904223u;
            d->x[i][k] = (float)(seed >> 8) / 8388608.0f - 1 + (k == (int)d->y[i] ? 0.5f : 0);
        }
    }
}

/* The rows differ from pass to pass, as those of a generator may. */
static inline keel_status run_next(void *context, void *x, void *y, float *w, int64_t capacity,
                                   int64_t *rows)
{
    run_data *d = context;
    (void)w;
    (void)capacity;
    if (d->at >= RUN_ROWS) return KEEL_END;
    const int n = RUN_ROWS - d->at < 7 ? RUN_ROWS - d->at : 7;
    memcpy(x, d->x[d->at], (size_t)n * sizeof d->x[0]);
    memcpy(y, d->y + d->at, (size_t)n * sizeof d->y[0]);
    *(float *)x += (float)d->passes;
    d->at += n;
    *rows = n;
    return KEEL_OK;
}

static inline keel_status run_reset(void *context)
{
    run_data *d = context;
    d->at = 0;
    d->passes++;
    return KEEL_OK;
}

static inline int64_t run_length(void *context)
{
    (void)context;
    return 6;
}

static inline keel_status run_get(void *context, int64_t i, void *x, void *y, float *w,
                                  int64_t capacity, int64_t *rows)
{
    run_data *d = context;
    (void)w;
    (void)capacity;
    memcpy(x, d->x[8 * i], 8 * sizeof d->x[0]);
    memcpy(y, d->y + 8 * i, 8 * sizeof d->y[0]);
    *rows = 8;
    return KEEL_OK;
}

static inline keel_status run_noise(void *context, const keel_tensor *in, keel_tensor *out,
                                    const keel_element_place *at)
{
    (void)context;
    for (uint32_t i = 0; i < RUN_FEATURES; i++)
        ((float *)out[0].data)[i] =
            ((const float *)in[0].data)[i] + (float)keel_element_uniform(at, i) / 4;
    *(float *)out[1].data = *(const float *)in[1].data;
    return KEEL_OK;
}

static inline keel_status run_keep(void *context, const keel_tensor *in, bool *keep,
                                   const keel_element_place *at)
{
    (void)context;
    (void)at;
    *keep = ((const float *)in[0].data)[1] > -0.8f;
    return KEEL_OK;
}

/* Random stages and batches behind the rows of a case. */
static inline void run_stages(keel_dataset **d, int source)
{
    const keel_map noise = { .size = sizeof noise, .call = run_noise, .random = true };
    const keel_filter some = { .size = sizeof some, .call = run_keep };
    const bool layers = source >= RUN_LAYERS;
    for (int stage = 0; stage < 8; stage++) {
        keel_dataset *next = NULL;
        if (stage == 0 && source == RUN_UNBATCHED) must(keel_dataset_unbatch(&next, *d));
        if (stage == 1 && !layers) must(keel_dataset_map(&next, *d, &noise));
        if (stage == 2 && source == RUN_STREAM) must(keel_dataset_filter(&next, *d, &some));
        if (stage == 3) must(keel_dataset_shuffle(&next, *d, 10));
        if (stage == 4 && layers)
            must(keel_dataset_apply(&next, "RandomFlip",
                                    KEEL_ARGS(KEEL_ARG_STR("mode", "vertical")), d, 1));
        if (stage == 5 && layers)
            must(keel_dataset_apply(
                &next, "RandomBrightness",
                KEEL_ARGS(KEEL_ARG_FLOAT("factor", 0.25), KEEL_ARG_JSON("value_range", "[-1, 1]")),
                d, 1));
        if (stage == 6) must(keel_dataset_batch(&next, *d, RUN_BATCH, false));
        if (stage == 7 && source == RUN_BATCHES)
            must(keel_dataset_apply(&next, "RandomErasing",
                                    KEEL_ARGS(KEEL_ARG_JSON("value_range", "[-1, 1]")), d, 1));
        if (!next) continue;
        keel_dataset_destroy(*d);
        *d = next;
    }
}

static inline void run_open(run_data *d, const run_case *c)
{
    const keel_shape features = { .rank = 1, .dim = { RUN_FEATURES } };
    keel_tensor x = { KEEL_FLOAT32, { .rank = 2, .dim = { RUN_ROWS, RUN_FEATURES } }, d->x };
    keel_tensor y = { KEEL_FLOAT32, { .rank = 1, .dim = { RUN_ROWS } }, d->y };
    const keel_generator g = { .size = sizeof g,
                               .context = d,
                               .next = run_next,
                               .reset = c->source == RUN_ONE_SHOT ? NULL : run_reset,
                               .max_rows = 8,
                               .has_y = true,
                               .x_dtype = KEEL_FLOAT32,
                               .y_dtype = KEEL_FLOAT32,
                               .x_shape = features };
    const keel_sequence q = { .size = sizeof q,
                              .context = d,
                              .length = run_length,
                              .get = run_get,
                              .max_rows = 8,
                              .has_y = true,
                              .x_dtype = KEEL_FLOAT32,
                              .y_dtype = KEEL_FLOAT32,
                              .x_shape = features };
    run_fill(d);
    d->at = d->passes = 0;
    if (c->stateful) {
        x.shape = (keel_shape){ .rank = 3, .dim = { RUN_ROWS, 2, RUN_FEATURES / 2 } };
    }
    if (c->source >= RUN_LAYERS) /* images, which the model takes as features */
        x.shape = (keel_shape){ .rank = 4, .dim = { RUN_ROWS, RUN_FEATURES, 1, 1 } };
    if (c->source == RUN_SEQUENCE)
        must(keel_dataset_from_sequence(&d->rows, &q));
    else if (c->source == RUN_GENERATOR || c->source == RUN_ONE_SHOT || c->source == RUN_UNBATCHED)
        must(keel_dataset_from_generator(&d->rows, &g));
    else
        must(keel_dataset_from_arrays(&d->rows, &x, &y, NULL));
    if (c->source >= RUN_PIPELINE) run_stages(&d->rows, c->source);
    x.shape.dim[0] = y.shape.dim[0] = 20;
    d->validation = NULL;
    if (c->validation) must(keel_dataset_from_arrays(&d->validation, &x, &y, NULL));
}

static inline void run_close(run_data *d)
{
    keel_dataset_destroy(d->rows);
    keel_dataset_destroy(d->validation);
}

static inline keel_model *run_model(const run_case *c)
{
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, "small", c->dtype, 5));
    if (c->policy) must(keel_model_set_dtype_policy(m, c->policy));
    if (c->stateful) {
        must(keel_model_input(m, KEEL_DIMS(2, RUN_FEATURES / 2),
                              KEEL_ARGS(KEEL_ARG_INT("batch_size", RUN_BATCH)), &x));
        x = must_call(m, "LSTM",
                      KEEL_ARGS(KEEL_ARG_INT("units", 5), KEEL_ARG_BOOL("stateful", true)), x);
    } else {
        must(keel_model_input(m, KEEL_DIMS(RUN_FEATURES), NULL, &x));
        x = must_call(m, "Dense",
                      KEEL_ARGS(KEEL_ARG_INT("units", 9), KEEL_ARG_STR("activation", "relu")), x);
    }
    x = must_call(m, "BatchNormalization", NULL, x);
    x = must_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.3)), x);
    x = must_call(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", RUN_CLASSES), KEEL_ARG_STR("activation", "softmax")), x);
    must(keel_model_outputs(m, &x, 1));
    must(
        keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { c->optimizer, c->args },
                                               .loss = { { "sparse_categorical_crossentropy" } },
                                               .metrics = { { "accuracy" } } }));
    return m;
}

static inline keel_fit_options run_options(const run_case *c, const run_data *d)
{
    return (keel_fit_options){ KEEL_FIT_OPTIONS,
                               .batch_size = RUN_BATCH * (c->source < RUN_SEQUENCE),
                               .epochs = RUN_EPOCHS,
                               .seed = 3,
                               .end = c->end,
                               .no_shuffle = c->no_shuffle,
                               .steps_per_epoch = c->steps_per_epoch,
                               .validation = d->validation };
}

/* Weights and the state of the optimizer must have the same bits. */
static inline void run_equal(const keel_model *a, const keel_model *b, const char *what)
{
    const size_t size = keel_dtype_size(a->dtype);
    for (int i = 0; i < a->n_weight; i++)
        if (memcmp(a->weight[i].data, b->weight[i].data,
                   size * (size_t)keel_shape_count(&a->weight[i].info.spec.shape)) != 0)
            fail_msg("%s: the weights '%s' differ", what, a->weight[i].info.name);
    for (int i = 0; i < a->compiled.n_state; i++)
        if (a->compiled.state[i].data &&
            memcmp(a->compiled.state[i].data, b->compiled.state[i].data,
                   size * (size_t)keel_shape_count(&a->compiled.state[i].shape)) != 0)
            fail_msg("%s: the optimizer's state %d differs", what, i);
    if (a->compiled.iterations != b->compiled.iterations ||
        a->compiled.loss_scale != b->compiled.loss_scale)
        fail_msg("%s: %lld steps instead of %lld", what, (long long)b->compiled.iterations,
                 (long long)a->compiled.iterations);
}

/* NaN equals NaN. */
static inline void run_equal_histories(const keel_history *a, const keel_history *b,
                                       const char *what)
{
    if (a->epochs != b->epochs || a->count != b->count)
        fail_msg("%s: %lld epochs instead of %lld", what, (long long)b->epochs,
                 (long long)a->epochs);
    for (int64_t i = 0; i < a->epochs * a->count; i++)
        if (memcmp(&a->value[i], &b->value[i], sizeof(double)) != 0)
            fail_msg("%s: %s of epoch %lld is %.17g instead of %.17g", what, a->name[i % a->count],
                     (long long)(i / a->count), b->value[i], a->value[i]);
}

#endif
