/* Works of processes that keep parts of the optimizer's state: optimizers with all kinds of it. */
#ifndef KEEL_TESTS_SHARDED_WORKS_H
#define KEEL_TESTS_SHARDED_WORKS_H
#include <stdlib.h>
#include <unistd.h>
#include "sent_bytes.h"
#include "train/sharded.h"

typedef struct work {
    const char *what, *optimizer; /* optimizer NULL: the recipe's network */
    const keel_arg *args;
    const char *constraint; /* of a kernel, as JSON; NULL: none */
    const char *callback;   /* NULL: none */
    const char *multi; /* the map of a MultiOptimizer whose default `optimizer` is; NULL: none */
    recipe recipe;
    bool compress, whole; /* whole: each process has all of the state */
} work;

#define LIKE                                                                                       \
    {                                                                                              \
        "an optimizer", products, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 16, 16, true              \
    }
static const recipe like = LIKE;

static const work works[] = {
    { "momentum", "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("momentum", 0.9)), .recipe = LIKE },
    { "no state at all", "SGD", .recipe = LIKE },
    { "three slots", "Adam", KEEL_ARGS(KEEL_ARG_BOOL("amsgrad", true)), .recipe = LIKE },
    { "decay", "AdamW", KEEL_ARGS(KEEL_ARG_FLOAT("weight_decay", 0.1)), .recipe = LIKE },
    { "slots that do not begin with 0", "Adagrad", .recipe = LIKE },
    { "slots that begin as the weight", "ScheduleFreeAdamW", .recipe = LIKE },
    { "a number besides", "Nadam", .recipe = LIKE },
    { "the norm of each weight", "Adam", KEEL_ARGS(KEEL_ARG_FLOAT("clipnorm", 0.01)),
      .recipe = LIKE },
    { "the norm of all weights", "Adam", KEEL_ARGS(KEEL_ARG_FLOAT("global_clipnorm", 0.01)),
      .recipe = LIKE },
    { "clipped elements", "Lion", KEEL_ARGS(KEEL_ARG_FLOAT("clipvalue", 0.001)), .recipe = LIKE },
    { "averages", "RMSprop", KEEL_ARGS(KEEL_ARG_BOOL("use_ema", true)), .recipe = LIKE },
    { "averages that become the weights", "Adam",
      KEEL_ARGS(KEEL_ARG_BOOL("use_ema", true), KEEL_ARG_INT("ema_overwrite_frequency", 3)),
      .recipe = LIKE },
    { "gradients of two steps", "Adam", KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2)),
      .recipe = LIKE },
    { "gradients of two steps, averages and a norm", "Adamax",
      KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2), KEEL_ARG_BOOL("use_ema", true),
                KEEL_ARG_FLOAT("global_clipnorm", 0.01)),
      .recipe = LIKE },
    { "vectors of at most that length", "Adam",
      .constraint = "{\"class_name\": \"MaxNorm\", \"config\": {\"max_value\": 0.2}}",
      .recipe = LIKE },
    { "several optimizers", "Adam", KEEL_ARGS(KEEL_ARG_FLOAT("clipnorm", 0.01)),
      .multi = "{\"dense_1/kernel\": {\"class_name\": \"SGD\", \"config\": {\"momentum\": 0.9, "
               "\"learning_rate\": 0.01, \"gradient_accumulation_steps\": 2}}, "
               "\".*/bias\": {\"class_name\": \"Lion\", \"config\": {\"use_ema\": true, "
               "\"learning_rate\": 0.001}}}",
      .recipe = LIKE },
    { "a rate that callbacks move", "Adam",
      .callback = "ReduceLROnPlateau(monitor='loss', patience=0, factor=0.5, min_delta=10)",
      .recipe = LIKE },
};
enum { N_WORKS = sizeof works / sizeof *works };

/* Files are written where nobody else writes. */
static inline int start_apart(void **state)
{
    const char *folder = getenv("KEEL_TEST_TMP");
    return folder && chdir(folder) ? -1 : start(state);
}

/* Its largest weight has nine tiles. */
static inline keel_model *model_with(const work *w)
{
    keel_model *m;
    keel_symbol x;
    if (!w->optimizer) return model_of(&w->recipe);
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = dense(m, x, 24, "relu");
    x = must_call(m, "BatchNormalization", NULL, must_call(m, "Flatten", NULL, x));
    x = must_call(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", 70), KEEL_ARG_STR("activation", "gelu"),
                  KEEL_ARG_JSON("kernel_constraint", w->constraint ? w->constraint : "null")),
        x);
    x = dense(m, x, CLASSES, "softmax");
    must(keel_model_outputs(m, &x, 1));
    must(
        keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { w->optimizer, w->args },
                                               .loss = { { "sparse_categorical_crossentropy" } },
                                               .metrics = { { "accuracy" } } }));
    return w->multi ? made_multi(m, w->multi) : m;
}

/* A process with its work. */
typedef struct member {
    process of;
    const work *work;
    bool whole;                  /* it does not shard the optimizer */
    const char *folder;          /* of checkpoints; NULL: none */
    int64_t every_steps, epochs; /* epochs 0: two */
    bool resume;
} member;

/* Fit, evaluate and predict. In one process nothing is in parts, unless a group says so. */
static inline keel_status fit_work(process *p, keel_strategy *s,
                                   const keel_callback *const *callbacks)
{
    const member *x = (const member *)p;
    const keel_callback *list[3] = { callbacks ? callbacks[0] : NULL };
    keel_callback *own = NULL;
    const bool alone = !p->group.count;
    const keel_checkpoint_options c = { KEEL_CHECKPOINT_OPTIONS, .folder = x->folder,
                                        .every_steps = x->every_steps, .resume = x->resume };
    const keel_fit_options o = { KEEL_FIT_OPTIONS,
                                 .batch_size = p->recipe->batch_size,
                                 .epochs = x->epochs ? x->epochs : 2,
                                 .end = p->recipe->end,
                                 .checkpoint = x->folder ? &c : NULL,
                                 .callbacks = list };
    keel_status st = keel_strategy_shard_optimizer(s, !alone && !x->whole && !x->work->whole);
    if (st >= 0 && x->work->compress) st = keel_strategy_compress(s, KEEL_COMPRESS_BF16);
    if (st >= 0 && p->recipe->shards) st = keel_strategy_reproducible(s, p->recipe->shards);
    if (st >= 0 && x->work->callback) st = keel_callback_parse(&own, x->work->callback);
    if (own) list[list[0] ? 1 : 0] = own;
    if (st >= 0) st = keel_fit(p->outcome.model, s, p->data, &o, &p->outcome.history);
    if (st >= 0) st = keel_evaluate(p->outcome.model, s, p->data, &o, &p->outcome.logs);
    if (st >= 0) st = keel_predict(p->outcome.model, s, p->data, &o, &p->outcome.predicted);
    keel_callback_destroy(own);
    return st;
}

/* One process, from the first step to the last, without parts. */
static inline void run_alone(outcome *one, const work *w)
{
    member x = { .of = { .recipe = &w->recipe, .data = rows_of(&w->recipe) }, .work = w };
    keel_strategy *s;
    x.of.outcome.model = model_with(w);
    must(keel_strategy_create(&s, "cpu:0"));
    must(fit_work(&x.of, s, NULL));
    keel_strategy_destroy(s);
    keel_dataset_destroy(x.of.data);
    *one = x.of.outcome;
}

typedef struct job {
    int n;
    member x[THREADS_MAX];
    thread_group group;
} job;

/* Process i has lanes[i] lanes; NULL: one each. */
static inline void begin_job(job *j, const work *w, int n, const int *lanes, int workers)
{
    memset(j, 0, sizeof *j);
    j->n = n;
    thread_group_begin(&j->group, n);
    for (int i = 0; i < n; i++) {
        const int own = lanes ? lanes[i] : 1;
        j->x[i] = (member){ .of = { .recipe = &w->recipe,
                                    .group = thread_group_of(&j->group, i),
                                    .data = rows_of(&w->recipe),
                                    .outcome.model = model_with(w),
                                    .run = fit_work,
                                    .lanes = own,
                                    .workers = workers < own ? workers : own,
                                    .measured = lanes && lanes[0] % 2 == 0,
                                    .timeout = PATIENT },
                            .work = w };
    }
}

static inline void run_job(job *j)
{
    live_together(live, j->x, sizeof *j->x, j->n);
}

static inline void end_job(job *j)
{
    for (int i = 0; i < j->n; i++) {
        assert_true(j->group.member[i].closed);
        forget(&j->x[i].of.outcome);
        keel_dataset_destroy(j->x[i].of.data);
    }
    thread_group_end(&j->group);
}

static inline void all_went_well(const job *j)
{
    for (int i = 0; i < j->n; i++)
        if (j->x[i].of.status < 0)
            fail_msg("%s, process %d of %d: %s", j->x[i].work->what, i, j->n, j->x[i].of.error);
}

/* n processes have the bits of `one`, and process 0 alone has all of the state. */
static inline void runs_as_one(const work *w, const outcome *one, int n, const int *lanes,
                               int workers)
{
    char how[128];
    job j;
    begin_job(&j, w, n, lanes, workers);
    run_job(&j);
    all_went_well(&j);
    for (int i = 0; i < n; i++) {
        const keel_model *m = j.x[i].of.outcome.model;
        snprintf(how, sizeof how, "%s: process %d of %d", w->what, i, n);
        compare(one, &j.x[i].of.outcome, &w->recipe, how);
        assert_true(keel_model_has_state(m) == (i == 0 || m->compiled.n_state == 0));
        assert_int_equal(m->compiled.iterations, one->model->compiled.iterations);
    }
    end_job(&j);
}

#endif
