/* Fits drawn by chance: a model, what it is compiled with, its rows and the options of the fit. */
#ifndef TESTS_RANDOM_FIT_H
#define TESTS_RANDOM_FIT_H
#include <math.h>
#include "random_graph.h"
#include "random_rows.h"
#include "made_multi.h"
#include "must.h"

enum { TEXT = 400 };

typedef struct drawn_optimizer {
    const char *name;
    keel_arg arg[10];
    int n_arg;
} drawn_optimizer;

typedef struct fitting {
    random_graph g;
    random_rows rows, held_out;
    keel_dtype dtype;
    const char *policy; /* NULL: none */
    drawn_optimizer optimizer;
    const char *schedule, *multi;  /* multi: optimizers of some weights; NULL: none */
    const char *callback, *second; /* NULL: none */
    double scale;                  /* with which the loss begins; 0: as by default */
    int growth;                    /* good steps that double it */
    int open;   /* which of the models of rows that differ in length; 0: none; STATEFUL */
    int shards; /* 0: sums in any order */
    bool recompute, metrics;
    double class_weight[3];
    keel_fit_options o;
} fitting;

static void with(drawn_optimizer *x, keel_arg a)
{
    x->arg[x->n_arg++] = a;
}

/* smooth: those by which a difference of a last place stays one. */
static void draw_optimizer(fitting *f, bool smooth)
{
    static const char *const names[] = {
        "SGD",      "Adam", "RMSprop", "AdamW", "Adagrad", "Adamax",    "Nadam",
        "Adadelta", "Lion", "Ftrl",    "Lamb",  "Muon",    "Adafactor", "ScheduleFreeAdamW"
    };
    static const char *const schedules[] = {
        "ExponentialDecay(0.02, 3, 0.5)", "CosineDecay(0.02, 7)",
        "PiecewiseConstantDecay([2, 5], [0.02, 0.01, 0.001])"
    };
    drawn_optimizer *x = &f->optimizer;
    const int n = smooth ? 3 : (int)(sizeof names / sizeof *names);
    x->name = names[chance(n)];
    with(x, (keel_arg)KEEL_ARG_FLOAT("learning_rate", percent(50) ? 0.01 : 0.002));
    if (!strcmp(x->name, "SGD") && percent(60)) {
        with(x, (keel_arg)KEEL_ARG_FLOAT("momentum", 0.9));
        if (percent(50)) with(x, (keel_arg)KEEL_ARG_BOOL("nesterov", true));
    }
    if (!strcmp(x->name, "Adam") && percent(30)) with(x, (keel_arg)KEEL_ARG_BOOL("amsgrad", true));
    if (!strcmp(x->name, "RMSprop") && percent(50))
        with(x, (keel_arg)KEEL_ARG_BOOL("centered", true));
    const int clip = chance(6);
    if (clip == 0) with(x, (keel_arg)KEEL_ARG_FLOAT("clipnorm", 0.05));
    if (clip == 1) with(x, (keel_arg)KEEL_ARG_FLOAT("global_clipnorm", 0.1));
    if (clip == 2) with(x, (keel_arg)KEEL_ARG_FLOAT("clipvalue", 0.02));
    if (percent(20)) with(x, (keel_arg)KEEL_ARG_FLOAT("weight_decay", 0.01));
    if (percent(30)) with(x, (keel_arg)KEEL_ARG_INT("gradient_accumulation_steps", 2 + chance(2)));
    if (percent(30)) {
        with(x, (keel_arg)KEEL_ARG_BOOL("use_ema", true));
        with(x, (keel_arg)KEEL_ARG_FLOAT("ema_momentum", 0.7));
        if (percent(50)) with(x, (keel_arg)KEEL_ARG_INT("ema_overwrite_frequency", 2 + chance(3)));
    }
    if (!smooth && !f->policy && percent(15))
        f->multi = "{\".*bias\": {\"class_name\": \"Nadam\", \"config\": {\"clipnorm\": 0.01, "
                   "\"gradient_accumulation_steps\": 2}}, \".*gamma\": {\"class_name\": \"SGD\", "
                   "\"config\": {\"global_clipnorm\": 0.02, \"use_ema\": true}}}";
    if (!f->multi && percent(20) && strcmp(x->name, "ScheduleFreeAdamW"))
        f->schedule = schedules[chance(sizeof schedules / sizeof *schedules)];
}

/* Penalties and constraints for layers with a kernel. smooth: as above; a bias before
 * BatchNormalization has a gradient of 0, to rounding, and so it has the sign that L1 asks for. */
static void bind_weights(random_graph *g, bool smooth)
{
    static const char *const penalties[] = {
        "{\"class_name\": \"L2\", \"config\": {\"l2\": 0.02}}",
        "{\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.003, \"l2\": 0.01}}",
        "{\"class_name\": \"OrthogonalRegularizer\", \"config\": {\"factor\": 0.01, \"mode\": "
        "\"rows\"}}"
    };
    static const char *const constraints[] = {
        "{\"class_name\": \"MaxNorm\", \"config\": {\"max_value\": 0.7, \"axis\": 0}}",
        "{\"class_name\": \"UnitNorm\", \"config\": {\"axis\": 0}}",
        "{\"class_name\": \"NonNeg\", \"config\": {}}",
        "{\"class_name\": \"MinMaxNorm\", \"config\": {\"min_value\": 0.5, \"max_value\": 0.9, "
        "\"rate\": 0.3, \"axis\": 0}}"
    };
    for (int i = 0; i < g->n; i++) {
        step *s = &g->step[i];
        const bool dense = !strcmp(s->layer, "Dense");
        if ((!dense && strcmp(s->layer, "Conv2D") != 0) || s->self != i) continue;
        bool has = false;
        for (int k = 0; k < s->n_arg; k++) has |= !strcmp(s->arg[k].key, "kernel_regularizer");
        if (!has && s->n_arg < ARGS_MAX && percent(20))
            give(s, (keel_arg)KEEL_ARG_JSON("kernel_regularizer", penalties[chance(2 + dense)]));
        if (s->n_arg < ARGS_MAX && percent(15))
            give(s, (keel_arg)KEEL_ARG_JSON("kernel_constraint", constraints[chance(4)]));
        if (s->n_arg < ARGS_MAX && percent(10))
            give(s, (keel_arg)KEEL_ARG_JSON("bias_regularizer", penalties[smooth ? 0 : chance(2)]));
    }
}

/* Those that read or write weights, or the rate, between steps. */
static void draw_callback(fitting *f)
{
    static const char *const texts[] = {
        "ReduceLROnPlateau(monitor='loss', patience=0, factor=0.5, min_delta=10)",
        "EarlyStopping(monitor='loss', patience=1, min_delta=10, restore_best_weights=True)",
        "EarlyStopping(monitor='loss', mode='max', patience=0, restore_best_weights=True)",
        "SwapEMAWeights(swap_on_epoch=True)", "SwapEMAWeights()"
    };
    bool averages = false;
    for (int i = 0; i < f->optimizer.n_arg; i++)
        averages |= !strcmp(f->optimizer.arg[i].key, "use_ema");
    const int n = averages && !f->multi ? 5 : 3;
    if (percent(25)) f->callback = texts[chance(n)];
    if (f->callback && percent(50)) f->second = texts[chance(n)];
    if (f->callback == f->second) f->second = NULL;
    if (f->second && strstr(f->callback, "Swap") && strstr(f->second, "Swap")) f->second = NULL;
    /* else there is no rate that it could lower */
    if ((f->schedule || f->multi) && f->callback == texts[0]) f->callback = NULL;
    if ((f->schedule || f->multi) && f->second == texts[0]) f->second = NULL;
}

/* A scale that is too large for most models at first, and grows soon. */
static void draw_scale(fitting *f)
{
    if (!f->policy || strcmp(f->policy, "mixed_float16") || percent(40)) return;
    f->scale = ldexp(1, 12 + chance(20));
    f->growth = 1 + chance(3);
}

static void draw_options(fitting *f)
{
    keel_fit_options *o = &f->o;
    *o = (keel_fit_options){ KEEL_FIT_OPTIONS };
    o->batch_size = f->g.batch;
    o->epochs = 1 + chance(3);
    o->initial_epoch = 0;
    o->no_shuffle = percent(30);
    o->seed = 3;
    o->end = percent(50) ? KEEL_KEEP : (keel_end_of_data)chance(percent(80) ? 4 : 5);
    o->threads = percent(50) ? 1 : 0;
    o->unfused = percent(20);
    o->no_graphs = percent(20);
    o->reference_kernels = true;
    if (percent(20)) o->steps_per_epoch = 1 + chance(4);
    if (percent(40)) {
        o->validation = f->held_out.data;
        if (percent(50)) o->validation_batch_size = 1 + chance(9);
        if (percent(20)) o->validation_steps = 1;
        if (percent(30)) o->validation_freq = 2;
    }
    if (f->g.n_out == 1 && percent(20)) {
        for (int i = 0; i < 3; i++) f->class_weight[i] = chance(4) / 2.0;
        o->class_weight = f->class_weight;
        o->class_weight_count = 3;
    }
    draw_callback(f);
}

/* ---- rows that differ in length: a program for each length of a batch ----------------------- */

enum { WORDS = 9, LENGTH = 11, STATEFUL = 4 };
static const int64_t lengths[] = { 4, 8, LENGTH };

/* Rows go on from step to step. */
static keel_symbol stateful_model(const fitting *f, keel_model *m)
{
    const keel_arg go_on = KEEL_ARG_BOOL("stateful", true), units = KEEL_ARG_INT("units", 3);
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(LENGTH), KEEL_ARGS(KEEL_ARG_INT("batch_size", f->g.batch)),
                          &x));
    x = must_call(m, "Embedding",
                  KEEL_ARGS(KEEL_ARG_INT("input_dim", WORDS), KEEL_ARG_INT("output_dim", 4),
                            KEEL_ARG_BOOL("mask_zero", f->g.seed % 2 == 0)),
                  x);
    x = must_call(m, "LSTM", KEEL_ARGS(units, go_on, KEEL_ARG_BOOL("return_sequences", true)), x);
    x = must_call(m, f->g.seed % 3 ? "GRU" : "SimpleRNN", KEEL_ARGS(units, go_on), x);
    return must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1)), x);
}

static keel_symbol model_of_words(const fitting *f, keel_model *m)
{
    keel_symbol x, y;
    keel_shape shape = { 1, { -1 } };
    must(keel_model_input(m, &shape, NULL, &x));
    x = must_call(m, "Embedding",
                  KEEL_ARGS(KEEL_ARG_INT("input_dim", WORDS), KEEL_ARG_INT("output_dim", 4),
                            KEEL_ARG_BOOL("mask_zero", f->open != 2)),
                  x);
    if (f->open == 1)
        x = must_call(m, "LSTM", KEEL_ARGS(KEEL_ARG_INT("units", 3)), x);
    else if (f->open == 2)
        x = must_call(
            m, "BatchNormalization", NULL,
            must_call(m, "Conv1D",
                      KEEL_ARGS(KEEL_ARG_INT("filters", 3), KEEL_ARG_INT("kernel_size", 3),
                                KEEL_ARG_STR("padding", "same")),
                      x));
    else {
        must(keel_model_call(m, "MultiHeadAttention",
                             KEEL_ARGS(KEEL_ARG_INT("num_heads", 2), KEEL_ARG_INT("key_dim", 2)),
                             (keel_symbol[]){ x, x }, 2, &y));
        x = must_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.3)), y);
    }
    if (f->open > 1) x = must_call(m, "GlobalAveragePooling1D", NULL, x);
    return must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1)), x);
}

static keel_status open_model(const fitting *f, keel_model **out)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, f->dtype, f->g.seed));
    keel_symbol x = f->open == STATEFUL ? stateful_model(f, m) : model_of_words(f, m);
    must(keel_model_outputs(m, &x, 1));
    *out = m;
    return keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } } });
}

static void open_rows(const fitting *f, random_rows *t, int64_t rows)
{
    int64_t *splits = t->array[t->n_array++] = numbers(KEEL_FLOAT64, rows + 1);
    const bool equal = f->open == STATEFUL;
    for (int64_t i = 0; i < rows; i++)
        splits[i + 1] = splits[i] + (equal ? LENGTH : 1 + chance(LENGTH));
    const int64_t n = splits[rows];
    void *x = t->array[t->n_array++] = numbers(f->dtype, n);
    void *y = t->array[t->n_array++] = numbers(f->dtype, rows);
    for (int64_t i = 0; i < n; i++) put(x, f->dtype, i, chance(WORDS));
    for (int64_t i = 0; i < rows; i++) put(y, f->dtype, i, (float)chance_real());
    const keel_array_field fields[2] = {
        { "words",
          KEEL_ROLE_INPUT,
          NULL,
          { f->dtype, { 1, { n } }, x },
          { KEEL_INT64, { 1, { rows + 1 } }, splits } },
        { "y", KEEL_ROLE_TARGET, NULL, { f->dtype, { 2, { rows, 1 } }, y } },
    };
    const keel_array_field of_equal[2] = {
        { "words", KEEL_ROLE_INPUT, NULL, { f->dtype, { 2, { rows, LENGTH } }, x } }, fields[1]
    };
    t->dtype = f->dtype;
    must(keel_dataset_from_fields(&t->data, equal ? of_equal : fields, 2));
}

static keel_status draw_fitting(fitting *f, uint64_t seed)
{
    *f = (fitting){ 0 };
    KEEL_TRY(draw_graph(&f->g, seed, false));
    chance_seed(seed * 16 + 7);
    f->g.rows = 1 + chance(percent(50) ? 12 : 45);
    f->g.batch = percent(20) ? f->g.rows : 1 + chance((int)f->g.rows);
    if (f->g.rows > 6 * f->g.batch) f->g.rows = 6 * f->g.batch - chance((int)f->g.batch);
    f->shards = percent(75) ? 16 + chance(percent(50) ? 1 : 20) : 0;
    f->dtype = !f->shards || percent(15) ? KEEL_FLOAT64 : KEEL_FLOAT32;
    if (f->dtype == KEEL_FLOAT32 && percent(30))
        f->policy = percent(50) ? "mixed_bfloat16" : "mixed_float16";
    f->recompute = percent(25);
    f->metrics = percent(40);
    bind_weights(&f->g, !f->shards);
    draw_optimizer(f, !f->shards);
    f->open = percent(12) ? 1 + chance(STATEFUL) : 0;
    random_graph less = f->g;
    less.rows = 1 + chance(11);
    if (f->open == STATEFUL) { /* whole batches */
        f->g.rows = f->g.batch * (1 + chance(4));
        less.rows = f->g.batch * (1 + chance(2));
    }
    if (f->open) {
        f->g.n_out = 1;
        f->g.loss[0] = LOSS_MSE;
        open_rows(f, &f->rows, f->g.rows);
        open_rows(f, &f->held_out, less.rows);
    } else {
        KEEL_TRY(draw_rows(&f->rows, &f->g, f->dtype));
        KEEL_TRY(draw_rows(&f->held_out, &less, f->dtype));
    }
    draw_options(f);
    draw_scale(f);
    if (f->open == STATEFUL) f->o.validation_batch_size = 0;
    if (!f->open || f->open == STATEFUL) return KEEL_OK;
    if (percent(60)) {
        f->o.bucket = lengths;
        f->o.bucket_count = sizeof lengths / sizeof *lengths;
    }
    if (percent(40)) f->o.programs = 2;
    return KEEL_OK;
}

static void free_fitting(fitting *f)
{
    free_rows(&f->rows);
    free_rows(&f->held_out);
}

static void describe(const fitting *f, char out[TEXT])
{
    int n = snprintf(out, TEXT, "%s(", f->optimizer.name);
    for (int i = 0; i < f->optimizer.n_arg && n < TEXT; i++) {
        const keel_arg *a = &f->optimizer.arg[i];
        n += snprintf(out + n, (size_t)(TEXT - n), "%s=%g, ", a->key,
                      a->kind == KEEL_ARG_IS_FLOAT ? a->real : (double)a->number);
    }
    if (n < TEXT)
        snprintf(out + n, (size_t)(TEXT - n),
                 ") %s, %s %s, %d shards%s, %d rows by %d, %d epochs, end %d, steps %d, "
                 "validation %d%s%s%s %s %s, open %d, scale %g",
                 f->multi      ? "beside others"
                 : f->schedule ? f->schedule
                               : "",
                 keel_dtype_name(f->dtype), f->policy ? f->policy : "", f->shards,
                 f->recompute ? ", recompute" : "", (int)f->g.rows, (int)f->g.batch,
                 (int)f->o.epochs, (int)f->o.end, (int)f->o.steps_per_epoch,
                 f->o.validation != NULL, f->o.class_weight ? ", class weights" : "",
                 f->g.weighted ? ", weights" : "", f->o.unfused ? ", unfused" : "",
                 f->callback ? f->callback : "", f->second ? f->second : "", f->open, f->scale);
}

static keel_status make_model(fitting *f, keel_model **out)
{
    keel_model *m;
    KEEL_TRY(f->open ? open_model(f, &m) : build_model(&f->g, f->dtype, &m));
    keel_compile c = { KEEL_COMPILE, .optimizer = { f->optimizer.name, f->optimizer.arg } };
    keel_status s = KEEL_OK;
    for (int k = 0; f->metrics && k < f->g.n_out; k++) {
        static const char *const names[LOSS_KINDS][2] = { { "mae", "RootMeanSquaredError" },
                                                          { "sparse_categorical_accuracy",
                                                            "sparse_categorical_crossentropy" },
                                                          { "binary_accuracy", "AUC" } };
        c.metrics[k] = (keel_named){ .name = names[f->g.loss[k]][k % 2], .output = k };
        c.weighted_metrics[k] = (keel_named){ .name = names[f->g.loss[k]][0], .output = k };
    }
    if (f->policy) s = keel_model_set_dtype_policy(m, f->policy);
    if (s >= 0) s = keel_model_recompile(m, &c);
    if (s >= 0 && f->schedule) s = keel_model_set_schedule(m, f->schedule);
    if (s >= 0 && f->multi) m = made_multi(m, f->multi);
    if (s >= 0 && f->scale > 0) {
        m->compiled.loss_scale_args.initial_scale = f->scale;
        m->compiled.loss_scale_args.dynamic_growth_steps = f->growth;
        m->compiled.loss_scale = (float)f->scale;
    }
    if (s < 0)
        keel_model_destroy(m);
    else
        *out = m;
    return s;
}

#endif
