/* Weights that live on devices: the bits that the host's moves give, for any number of devices,
 * whatever asks for weights on the way; what fails there; what the host moves is named. The devices
 * are stand-ins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "base/memory.h"
#include "reproducible_works.h"
#include "sweep.h"
#include "standin.h"
#include "train/strategy.h"

enum { DEVICES = 8, EPOCHS = 2 };

/* ---- networks and fits ----------------------------------------------------------------------- */

/* No regulariser, statistics that the host moves, dropout. */
static keel_symbol network(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "BatchNormalization", NULL, conv(m, x, 6, 3, "first"));
    x = must_call(m, "MaxPooling2D", NULL, must_call(m, "ReLU", NULL, x));
    x = must_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.3)), x);
    x = must_call(m, "Flatten", NULL, x);
    return must_call(m, "Dense",
                     KEEL_ARGS(KEEL_ARG_INT("units", CLASSES),
                               KEEL_ARG_STR("activation", "softmax"), KEEL_ARG_STR("name", "last")),
                     x);
}

/* Nothing that the host moves, and a layer that nobody does. */
static keel_symbol partly_frozen(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 4)), x);
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", 5), KEEL_ARG_BOOL("trainable", false)), x);
    x = must_call(m, "Flatten", NULL, x);
    return must_call(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax")), x);
}

/* Stand-ins that move no weights. */
static const keel_device_type *host_moves(void)
{
    static keel_device_type type;
    type = standin_runs;
    type.move = NULL;
    return &type;
}

typedef struct machine {
    keel_device *device[DEVICES];
    keel_strategy *strategy;
    int n;
} machine;

static machine machine_of(const keel_device_type *type, int n)
{
    machine m = { .n = n };
    for (int i = 0; i < n; i++) m.device[i] = standin_open(type, i);
    must(keel_strategy_create_devices(&m.strategy, m.device, n));
    return m;
}

/* Returns the moves of a device. */
static int close_machine(machine *m)
{
    const int moves = standin_of(m->device[0])->moves;
    keel_strategy_destroy(m->strategy);
    for (int i = 0; i < m->n; i++) {
        const standin *s = standin_of(m->device[i]);
        assert_int_equal(s->allocations, 0);
        if (s->clocks.reports > 0 && !s->ignore_at)
            fail_msg("%s: %s (%d such)", s->base.name, s->clocks.first, s->clocks.reports);
        m->device[i]->type->close(m->device[i]);
    }
    return moves;
}

static const recipe of_float32 = { "float32", network, KEEL_FLOAT32, NULL, "adam",
                                   KEEL_KEEP, 32,      16,           true };
static const recipe of_float64 = { "float64", network, KEEL_FLOAT64, NULL, "adam",
                                   KEEL_KEEP, 32,      16,           false };
static const recipe of_float16 = { "float16", network,   KEEL_FLOAT32, "mixed_float16",
                                   "adam",    KEEL_KEEP, 32,           16,
                                   false };

/* Both regularisers of elements, on a weight of several tiles too, and beside weights without. */
static keel_symbol with_regularizers(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "Conv2D",
                  KEEL_ARGS(KEEL_ARG_INT("filters", 6), KEEL_ARG_INT("kernel_size", 3),
                            KEEL_ARG_JSON("kernel_regularizer",
                                          "{\"class_name\": \"L1L2\", \"config\": {\"l1\": "
                                          "0.002, \"l2\": 0.01}}"),
                            KEEL_ARG_JSON("bias_regularizer", "{\"class_name\": \"L1\", "
                                                              "\"config\": {\"l1\": 0.03}}")),
                  x);
    x = must_call(m, "Flatten", NULL, must_call(m, "ReLU", NULL, x));
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", 700),
                            KEEL_ARG_JSON("kernel_regularizer", "{\"class_name\": \"L2\", "
                                                                "\"config\": {\"l2\": 0.02}}")),
                  x);
    return must_call(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax")), x);
}

static const recipe regularised = { "regularised", with_regularizers, KEEL_FLOAT32, NULL,
                                    "adam",        KEEL_KEEP,         32,           16,
                                    true };
static const recipe regularised_64 = {
    "regularised in float64", with_regularizers, KEEL_FLOAT64, NULL, "sgd", KEEL_KEEP, 32, 16, true
};

/* All constraints, along rows, columns, windows and a whole weight, beside a regulariser. */
static keel_symbol with_constraints(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(
        m, "Conv2D",
        KEEL_ARGS(KEEL_ARG_INT("filters", 6), KEEL_ARG_INT("kernel_size", 3),
                  KEEL_ARG_JSON("kernel_constraint", "{\"class_name\": \"MaxNorm\", \"config\": "
                                                     "{\"max_value\": 0.7, \"axis\": [0, 1, 2]}}"),
                  KEEL_ARG_JSON("bias_constraint", "{\"class_name\": \"NonNeg\", "
                                                   "\"config\": {}}")),
        x);
    x = must_call(m, "Flatten", NULL, must_call(m, "ReLU", NULL, x));
    x = must_call(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", 100),
                  KEEL_ARG_JSON("kernel_constraint",
                                "{\"class_name\": \"UnitNorm\", \"config\": {\"axis\": 0}}"),
                  KEEL_ARG_JSON("kernel_regularizer",
                                "{\"class_name\": \"L2\", \"config\": {\"l2\": 0.02}}"),
                  KEEL_ARG_JSON("bias_constraint",
                                "{\"class_name\": \"MaxNorm\", \"config\": {\"max_value\": "
                                "0.01, \"axis\": 0}}")),
        x);
    return must_call(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax"),
                  KEEL_ARG_JSON("kernel_constraint",
                                "{\"class_name\": \"MinMaxNorm\", \"config\": {\"min_value\": "
                                "0.5, \"max_value\": 0.9, \"rate\": 0.3, \"axis\": 1}}")),
        x);
}

static const recipe constrained = { "constrained", with_constraints, KEEL_FLOAT32, NULL,
                                    "adam",        KEEL_KEEP,        32,           16,
                                    true };
static const recipe constrained_64 = {
    "constrained in float64", with_constraints, KEEL_FLOAT64, NULL, "sgd", KEEL_KEEP, 32, 16, true
};

static const recipe frozen = { "frozen", partly_frozen, KEEL_FLOAT32, NULL, "adam", KEEL_KEEP, 32,
                               16,       true };

typedef struct work {
    const recipe *r;
    const char *optimizer;
    const keel_arg *args;
    const keel_callback *const *callbacks;
    bool validates;
    const char *multi; /* the map of a MultiOptimizer whose default `optimizer` is; NULL: none */
} work;

static keel_model *model_by(const work *x)
{
    keel_model *m = model_of(x->r);
    must(keel_model_recompile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { x->optimizer, x->args } }));
    return x->multi ? made_multi(m, x->multi) : m;
}

/* Weights of each lie between those of others. */
static const char *const by_three =
    "{\".*/bias\": {\"class_name\": \"SGD\", \"config\": {\"momentum\": 0.9}}, "
    "\"last/kernel\": {\"class_name\": \"RMSprop\", \"config\": {}}}";
/* Steps of one in which others do not move, and norms of each kind. */
static const char *const with_norms =
    "{\".*/bias\": {\"class_name\": \"Nadam\", \"config\": {\"clipnorm\": 0.01, "
    "\"gradient_accumulation_steps\": 2}}, "
    "\"dense/kernel\": {\"class_name\": \"SGD\", \"config\": {\"global_clipnorm\": 0.02, "
    "\"use_ema\": true}}}";

static keel_status fit(outcome *o, const work *x, keel_strategy *s)
{
    keel_dataset *d = rows_of(x->r);
    const keel_fit_options options = {
        KEEL_FIT_OPTIONS, .batch_size = x->r->batch_size,        .epochs = EPOCHS,
        .end = x->r->end, .validation = x->validates ? d : NULL, .callbacks = x->callbacks
    };
    keel_status st = keel_strategy_reproducible(s, x->r->shards);
    if (st >= 0) st = keel_fit(o->model, s, d, &options, &o->history);
    if (st >= 0) st = keel_evaluate(o->model, s, d, &options, &o->logs);
    if (st >= 0) st = keel_predict(o->model, s, d, &options, &o->predicted);
    keel_dataset_destroy(d);
    return st;
}

static outcome run(const work *x, const keel_device_type *type, int devices, int *moves)
{
    outcome o = { .model = model_by(x) };
    machine m = machine_of(type, devices);
    must(fit(&o, x, m.strategy));
    *moves = close_machine(&m);
    return o;
}

static void compare_with_host(const work *x, const char *name, int devices, bool stores)
{
    char how[96];
    int moves;
    snprintf(how, sizeof how, "%s on %d devices", name, devices);
    outcome host = run(x, host_moves(), 1, &moves);
    assert_int_equal(moves, 0);
    outcome there = run(x, stores ? &standin_stores : &standin_runs, devices, &moves);
    if (moves == 0) fail_msg("%s: no weight has moved there", how);
    compare(&host, &there, x->r, how);
    forget(&host);
    forget(&there);
}

/* ---- bits ------------------------------------------------------------------------------------ */

#define MOMENTUM KEEL_ARG_FLOAT("momentum", 0.9), KEEL_ARG_FLOAT("learning_rate", 0.05)

static void bits_are_those_of_the_hosts_moves(void **unused)
{
    const struct {
        const char *name;
        work x;
    } cases[] = {
        { "SGD", { &of_float32, "sgd" } },
        { "momentum", { &of_float32, "sgd", KEEL_ARGS(MOMENTUM) } },
        { "momentum, decay and clipped values",
          { &of_float32, "sgd",
            KEEL_ARGS(MOMENTUM, KEEL_ARG_FLOAT("clipvalue", 0.01),
                      KEEL_ARG_FLOAT("weight_decay", 0.01)) } },
        { "Nesterov",
          { &of_float32, "sgd", KEEL_ARGS(MOMENTUM, KEEL_ARG_BOOL("nesterov", true)) } },
        { "Adam", { &of_float32, "adam" } },
        { "amsgrad", { &of_float32, "adam", KEEL_ARGS(KEEL_ARG_BOOL("amsgrad", true)) } },
        { "AdamW", { &of_float32, "adamw" } },
        { "Adam, norms of weights",
          { &of_float32, "adam", KEEL_ARGS(KEEL_ARG_FLOAT("clipnorm", 0.02)) } },
        { "Adam, the norm of all",
          { &of_float32, "adam", KEEL_ARGS(KEEL_ARG_FLOAT("global_clipnorm", 0.02)) } },
        { "Adam beside a frozen layer", { &frozen, "adamw" } },
        { "Adam in float64", { &of_float64, "adam" } },
        { "Nesterov in float64",
          { &of_float64, "sgd", KEEL_ARGS(MOMENTUM, KEEL_ARG_BOOL("nesterov", true)) } },
        { "Adam in float16, whose loss is scaled", { &of_float16, "adam" } },
        { "RMSprop", { &of_float32, "rmsprop" } },
        { "RMSprop, centered, with momentum",
          { &of_float32, "rmsprop", KEEL_ARGS(MOMENTUM, KEEL_ARG_BOOL("centered", true)) } },
        { "Adagrad", { &of_float32, "adagrad" } },
        { "Adadelta in float64", { &of_float64, "adadelta" } },
        { "Adamax", { &of_float32, "adamax" } },
        { "Nadam, whose number goes on", { &of_float32, "nadam" } },
        { "Lion", { &of_float32, "lion" } },
        { "Ftrl", { &of_float32, "ftrl" } },
        { "ScheduleFreeAdamW, which begins with the weights",
          { &of_float32, "schedulefreeadamw" } },
        { "averages of weights",
          { &of_float32, "adam", KEEL_ARGS(KEEL_ARG_BOOL("use_ema", true)) } },
        { "averages that weights become on the way",
          { &of_float32, "sgd",
            KEEL_ARGS(MOMENTUM, KEEL_ARG_BOOL("use_ema", true), KEEL_ARG_FLOAT("ema_momentum", 0.7),
                      KEEL_ARG_INT("ema_overwrite_frequency", 2)) } },
        { "averages beside a frozen layer",
          { &frozen, "adamw", KEEL_ARGS(KEEL_ARG_BOOL("use_ema", true)) } },
        { "regularisers", { &regularised, "adam" } },
        { "regularisers, and gradients of two steps",
          { &regularised, "sgd",
            KEEL_ARGS(MOMENTUM, KEEL_ARG_INT("gradient_accumulation_steps", 2)) } },
        { "regularisers in float64", { &regularised_64, "adamw" } },
        { "gradients of two steps",
          { &of_float32, "adam", KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2)) } },
        { "gradients of two steps, averages, in float64",
          { &of_float64, "nadam",
            KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2),
                      KEEL_ARG_BOOL("use_ema", true)) } },
        { "constraints", { &constrained, "adam" } },
        { "constraints in float64", { &constrained_64, "sgd", KEEL_ARGS(MOMENTUM) } },
        { "constraints, averages that weights become",
          { &constrained, "sgd",
            KEEL_ARGS(MOMENTUM, KEEL_ARG_BOOL("use_ema", true), KEEL_ARG_FLOAT("ema_momentum", 0.7),
                      KEEL_ARG_INT("ema_overwrite_frequency", 2)) } },
        { "constraints, also in steps that do not move",
          { &constrained, "adam", KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2)) } },
        { "Lamb", { &of_float32, "lamb" } },
        { "Lamb, regularisers and decay",
          { &regularised, "lamb", KEEL_ARGS(KEEL_ARG_FLOAT("weight_decay", 0.01)) } },
        { "Lamb in float64, of two steps, with averages and a norm",
          { &regularised_64, "lamb",
            KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2),
                      KEEL_ARG_BOOL("use_ema", true), KEEL_ARG_FLOAT("clipnorm", 0.02)) } },
        { "Muon, of matrices, beside Adam", { &of_float32, "muon" } },
        { "Muon, regularisers, in an even number of iterations",
          { &regularised, "muon", KEEL_ARGS(KEEL_ARG_INT("ns_steps", 2)) } },
        { "Muon in float64, of two steps, with averages and a norm",
          { &regularised_64, "muon",
            KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2), KEEL_ARG_INT("ns_steps", 1),
                      KEEL_ARG_BOOL("use_ema", true), KEEL_ARG_FLOAT("clipnorm", 0.02),
                      KEEL_ARG_BOOL("nesterov", false)) } },
        { "Muon beside others, with constraints",
          { &constrained, "muon", KEEL_ARGS(KEEL_ARG_FLOAT("adam_lr_ratio", 0.3)),
            .multi = with_norms } },
        { "Adafactor, of matrices, windows and vectors", { &of_float32, "adafactor" } },
        { "Adafactor, regularisers, decay and clipped values",
          { &regularised, "adafactor",
            KEEL_ARGS(KEEL_ARG_FLOAT("weight_decay", 0.01), KEEL_ARG_FLOAT("clipvalue", 0.01)) } },
        { "Adafactor in float64, of two steps, with averages and a norm",
          { &regularised_64, "adafactor",
            KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2),
                      KEEL_ARG_BOOL("use_ema", true), KEEL_ARG_FLOAT("clipnorm", 0.02)) } },
        { "Adafactor in float16, whose loss is scaled", { &of_float16, "adafactor" } },
        { "Adafactor beside others, with constraints",
          { &constrained, "adafactor", KEEL_ARGS(KEEL_ARG_FLOAT("clip_threshold", 0.5)),
            .multi = with_norms } },
        { "Lamb beside others", { &constrained, "lamb", .multi = with_norms } },
        { "three optimizers", { &of_float32, "adam", .multi = by_three } },
        { "three optimizers in float64", { &of_float64, "lion", .multi = by_three } },
        { "three optimizers, norms, regularisers and gradients of two steps",
          { &regularised, "adam", KEEL_ARGS(KEEL_ARG_FLOAT("clipnorm", 0.05)),
            .multi = with_norms } },
        { "several optimizers and constraints", { &constrained, "sgd", .multi = with_norms } },
        { "norms of weights, of gradients of two steps",
          { &of_float32, "adam",
            KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2),
                      KEEL_ARG_FLOAT("clipnorm", 0.02)) } },
        { "the norm of all, of gradients with those of regularisers",
          { &regularised, "adam", KEEL_ARGS(KEEL_ARG_FLOAT("global_clipnorm", 0.02)) } },
        { "norms of both, in float64",
          { &regularised_64, "sgd",
            KEEL_ARGS(MOMENTUM, KEEL_ARG_INT("gradient_accumulation_steps", 3),
                      KEEL_ARG_FLOAT("clipnorm", 0.02)) } },
        { "the norm of gradients of two steps, whose loss is scaled",
          { &of_float16, "sgd",
            KEEL_ARGS(MOMENTUM, KEEL_ARG_INT("gradient_accumulation_steps", 2),
                      KEEL_ARG_FLOAT("global_clipnorm", 0.02)) } },
    };
    static const int devices[] = { 1, 2, 3, 8 };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < 4; k++)
            if ((i + k) % (size_t)thin(1, 2, 4) == 0)
                compare_with_host(&cases[i].x, cases[i].name, devices[k], (i + k) % 2);
}

/* ---- votes ----------------------------------------------------------------------------------- */

typedef struct voting {
    const char *what, *recipe;
    int devices;
    bool sums; /* the devices add up gradients */
    int shards;
    bool stays; /* gradients do */
    int joined; /* checks of gradients that are joined, too */
    work by;    /* with this recipe and optimizer; else those of `recipe`. If the devices do not
                   vote, the host moves the weights */
} voting;

static const recipe *recipe_voting(const voting *x)
{
    return x->by.r ? x->by.r : recipe_of(x->recipe);
}

/* A fit without a validation: what it leaves, and the bytes that came to the host. */
static outcome fit_voting(const voting *x, bool votes, int64_t *bytes, int *checks)
{
    static keel_device_type silent;
    const keel_device_type *type = x->sums ? &standin_sums : &standin_runs;
    const recipe *r = recipe_voting(x);
    outcome o = { .model = x->by.r ? model_by(&x->by) : model_of(r) };
    keel_dataset *d = rows_of(r);
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 32, .epochs = EPOCHS };
    silent = *type;
    silent.check = NULL;
    if (x->by.r) silent.move = NULL;
    machine m = machine_of(votes ? type : &silent, x->devices);
    if (x->shards > 0) must(keel_strategy_reproducible(m.strategy, x->shards));
    must(keel_fit(o.model, m.strategy, d, &options, NULL));
    *bytes = *checks = 0;
    for (int i = 0; i < m.n; i++) {
        *bytes += standin_of(m.device[i])->out_bytes;
        *checks += standin_of(m.device[i])->checks;
    }
    assert_true((close_machine(&m) > 0) == (votes || !x->by.r));
    keel_dataset_destroy(d);
    return o;
}

static int64_t weight_bytes(keel_model *m)
{
    int64_t bytes = 0;
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor w;
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &w));
        bytes += keel_shape_count(&w.shape) * (int64_t)keel_dtype_size(w.dtype);
        keel_tensor_free(&w);
    }
    return bytes;
}

/* With the bits that the host's divisions and votes give, in fewer bytes: those of the weights in
 * each step. */
static void gradients_stay_where_they_are_whole(void **unused)
{
    const voting cases[] = {
        { "one device", "convolutions", 1, false, 0, true },
        { "one device, shards, a layer called twice", "convolutions", 1, false, 16, true },
        { "one device, products", "products", 1, false, 16, true },
        { "one device, float16", "deep in float16", 1, false, 0, true },
        { "devices that add up, statistics of the batch", "convolutions", 2, true, 0, true },
        { "devices that do not add up", "convolutions", 2, false, 0, false },
        { "reproducible steps of several", "products", 3, true, 16, false },
        { "one device, norms of gradients with those of regularisers",
          NULL,
          1,
          false,
          0,
          true,
          6,
          { &regularised, "adam", KEEL_ARGS(KEEL_ARG_FLOAT("global_clipnorm", 0.02)) } },
        { "devices that add up, norms of gradients of two steps",
          NULL,
          2,
          true,
          0,
          true,
          2 * 3,
          { &regularised, "sgd",
            KEEL_ARGS(MOMENTUM, KEEL_ARG_INT("gradient_accumulation_steps", 2),
                      KEEL_ARG_FLOAT("clipnorm", 0.02)) } },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const voting *x = &cases[i];
        int64_t by_host, there;
        int none, checks;
        outcome a = fit_voting(x, false, &by_host, &none), b = fit_voting(x, true, &there, &checks);
        const int64_t steps = keel_model_steps_done(b.model);
        assert_int_equal(none, 0);
        if (checks != (x->stays ? steps * x->devices + x->joined : 0))
            fail_msg("%s: %d checks in %d steps", x->what, checks, (int)steps);
        if (x->stays && !x->by.r && by_host - there < steps * weight_bytes(b.model) * 3 / 4)
            fail_msg("%s: %lld bytes came, and %lld to a host that votes", x->what,
                     (long long)there, (long long)by_host);
        compare_weights(&a, &b, recipe_voting(x), x->what);
        forget(&a);
        forget(&b);
    }
}

/* The loss is finite, and one gradient is not. */
static void a_gradient_that_is_not_finite_fails_the_step_by_its_name(void **unused)
{
    (void)unused;
    for (int devices = 1; devices <= 3; devices++) {
        float x[64], y[64] = { 0 }, small[1] = { 1e-3F }, large[1] = { 3e38F };
        const keel_tensor tx = { KEEL_FLOAT32, { 2, { 64, 1 } }, x };
        const keel_tensor ty = { KEEL_FLOAT32, { 2, { 64, 1 } }, y };
        const keel_tensor weight[] = { { KEEL_FLOAT32, { 2, { 1, 1 } }, small },
                                       { KEEL_FLOAT32, { 2, { 1, 1 } }, large } };
        static const char *const name[] = { "first/kernel", "last/kernel" };
        keel_model *m;
        keel_dataset *d;
        for (int i = 0; i < 64; i++) x[i] = i == 40 ? 20 : 1;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 1))));
        for (int k = 0; k < 2; k++)
            must(
                keel_model_add(m, "Dense",
                               KEEL_ARGS(KEEL_ARG_INT("units", 1), KEEL_ARG_BOOL("use_bias", false),
                                         KEEL_ARG_STR("name", k ? "last" : "first"))));
        must(keel_model_compile(
            m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mae" } } }));
        for (int k = 0; k < 2; k++) must(keel_model_set_weight(m, name[k], &weight[k]));
        must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
        machine s = machine_of(&standin_sums, devices);
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 64 };
        assert_int_equal(keel_fit(m, s.strategy, d, &options, NULL), KEEL_ENUMERIC);
        if (!strstr(keel_error(), "the gradient of 'first/kernel' is not finite"))
            fail_msg("%s", keel_error());
        assert_true(standin_of(s.device[0])->checks > 0);
        assert_int_equal(close_machine(&s), 0); /* no weight has moved */
        for (int k = 0; k < 2; k++) {
            keel_tensor w;
            must(keel_model_get_weight(m, name[k], &w));
            assert_memory_equal(w.data, weight[k].data, sizeof(float));
            keel_tensor_free(&w);
        }
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
}

/* ---- who asks for weights -------------------------------------------------------------------- */

static keel_status doubles_a_weight(void *context, const keel_moment *now)
{
    keel_tensor w;
    int *step = context;
    if (++*step % 3 != 0) return KEEL_OK;
    KEEL_TRY(keel_model_get_weight(now->model, "last/kernel", &w));
    for (int64_t i = 0; i < keel_shape_count(&w.shape); i++) ((float *)w.data)[i] *= 1.5f;
    const keel_status s = keel_model_set_weight(now->model, "last/kernel", &w);
    keel_tensor_free(&w);
    return s;
}

static keel_status reads_a_weight(void *context, const keel_moment *now)
{
    keel_tensor w;
    double *sum = context;
    KEEL_TRY(keel_model_get_weight(now->model, "first/kernel", &w));
    for (int64_t i = 0; i < keel_shape_count(&w.shape); i++)
        *sum = *sum * 0.75 + (double)((float *)w.data)[i];
    keel_tensor_free(&w);
    return KEEL_OK;
}

/* Between steps, with a validation behind each epoch. */
static void callbacks_read_and_write_the_weights_of_now(void **unused)
{
    double seen[2] = { 0 };
    (void)unused;
    for (int devices = 1; devices <= 3; devices += 2) {
        outcome o[2];
        for (int there = 0; there < 2; there++) {
            int step = 0, moves;
            const keel_callback writes = { KEEL_CALLBACK, .on_train_batch_end = doubles_a_weight,
                                           .context = &step };
            const keel_callback reads = { KEEL_CALLBACK, .on_train_batch_end = reads_a_weight,
                                          .context = &seen[there] };
            const work x = { &of_float32, "adam", NULL, KEEL_CALLBACKS(&writes, &reads), true };
            o[there] = run(&x, there ? &standin_runs : host_moves(), devices, &moves);
            assert_true((moves > 0) == (there > 0));
        }
        assert_true(seen[0] != 0 && seen[0] == seen[1]);
        compare(&o[0], &o[1], &of_float32, "a fit whose callbacks change weights");
        forget(&o[0]);
        forget(&o[1]);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool from_outside(void *context)
{
    return context == NULL;
}

/* Returns the moves of a device. */
static int part_of_a_fit(keel_model *model, const char *folder, int devices, int64_t steps)
{
    const keel_callback ends = end_after(&steps);
    const keel_checkpoint_options c = { KEEL_CHECKPOINT_OPTIONS, .folder = folder, .resume = true,
                                        .every_steps = 1, .interrupted = from_outside };
    const keel_fit_options options = {
        KEEL_FIT_OPTIONS,      .batch_size = of_float32.batch_size, .epochs = EPOCHS,
        .end = of_float32.end, .callbacks = KEEL_CALLBACKS(&ends),  .checkpoint = &c
    };
    keel_dataset *d = rows_of(&of_float32);
    machine m = machine_of(&standin_runs, devices);
    must(keel_strategy_reproducible(m.strategy, of_float32.shards));
    must(keel_fit(model, m.strategy, d, &options, NULL));
    keel_dataset_destroy(d);
    return close_machine(&m);
}

/* A checkpoint has what the devices had, and another number of devices goes on from it: also
 * between two steps whose gradients move weights together. */
static void a_fit_goes_on_from_what_devices_had(void **unused)
{
    const struct {
        const char *name;
        work x;
        int64_t stop;
    } cases[] = {
        { "sgd", { &of_float32, "sgd" }, 2 },
        { "adam", { &of_float32, "adam" }, 2 },
        { "two-steps",
          { &of_float32, "adam", KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2)) },
          3 },
        { "two-steps-and-norms",
          { &of_float32, "adam",
            KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2),
                      KEEL_ARG_FLOAT("clipnorm", 0.02)) },
          3 },
        { "two-steps-and-the-norm-of-all",
          { &of_float32, "adam",
            KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2),
                      KEEL_ARG_FLOAT("global_clipnorm", 0.02)) },
          3 },
    };
    const char *root = getenv("KEEL_TEST_TMP");
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int last = 1; last <= 2; last++) {
            char folder[512], how[64];
            int moves;
            const work *x = &cases[i].x;
            outcome whole = run(x, host_moves(), 1, &moves);
            outcome parts = { .model = model_by(x) };
            snprintf(folder, sizeof folder, "%s/resident-%s-%d", root ? root : "/tmp",
                     cases[i].name, last);
            assert_true(part_of_a_fit(parts.model, folder, 3, cases[i].stop) > 0);
            keel_model_destroy(parts.model);
            parts.model = model_by(x);
            assert_true(part_of_a_fit(parts.model, folder, last, 100) > 0);
            snprintf(how, sizeof how, "a fit that went on, %s on %d", cases[i].name, last);
            compare_weights(&whole, &parts, x->r, how);
            forget(&whole);
            forget(&parts);
        }
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Weights and state after so many steps. */
static outcome after(const work *of, int64_t steps)
{
    int moves;
    const keel_callback ends = end_after(&steps);
    const work x = { of->r, of->optimizer, of->args, KEEL_CALLBACKS(&ends), .multi = of->multi };
    if (steps > 0) return run(&x, host_moves(), 1, &moves);
    return (outcome){ .model = model_by(&x) };
}

/* Norms by which it clips are of gradients that devices join. */
static const work joins = { &of_float32, "adam",
                            KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2),
                                      KEEL_ARG_FLOAT("global_clipnorm", 0.02)) };
static const work joins_and_measures = { &regularised, "adam",
                                         KEEL_ARGS(KEEL_ARG_FLOAT("clipnorm", 0.02)) };
static const work by_several = { &of_float32, "adam", .multi = by_three };
static const work by_lamb = { &of_float32, "lamb" };
static const work by_muon = { &of_float32, "muon" };
static const work by_adafactor = { &of_float32, "adafactor" };
static const work by_lamb_measured = { &regularised, "lamb" };
static const work plainly = { &of_float32, "adam" };
static const work by_scaled_losses = { &of_float16, "adam" };
static const work regularly = { &regularised, "sgd", KEEL_ARGS(MOMENTUM) };

/* Of one device, and of one among three. What is left is what some step has left: weights, state
 * and count go together. */
static void fail_each_call(const work *x)
{
    enum { STEPS_MOST = 64 };
    const int runs = thin(40, 12, 4);
    outcome known[STEPS_MOST] = { 0 };
    for (int devices = 1; devices <= 3; devices += 2) {
        int calls = 0;
        for (int k = 0; k <= runs; k++) { /* the first has no failure, and counts the calls */
            outcome o = { .model = model_by(x) };
            machine m = machine_of(k % 2 ? &standin_runs : &standin_stores, devices);
            standin *s = standin_of(m.device[devices / 2]);
            s->fail_at = k == 0 ? 0 : 1 + (int)((int64_t)(calls - 1) * (k - 1) / runs);
            const keel_status st = fit(&o, x, m.strategy);
            if (k == 0) {
                must(st);
                calls = s->calls;
            } else if (s->calls >= s->fail_at) {
                const int64_t steps = keel_model_steps_done(o.model);
                assert_true(st == KEEL_OK || st == KEEL_EDEVICE || st == KEEL_ENOMEM);
                assert_true(st == KEEL_OK ? devices > 1 : strstr(keel_error(), "standin:") != NULL);
                assert_true(steps < STEPS_MOST);
                if (!known[steps].model) known[steps] = after(x, steps);
                compare_weights(&known[steps], &o, x->r, "a failure");
            }
            close_machine(&m);
            forget(&o);
        }
    }
    for (int i = 0; i < STEPS_MOST; i++)
        if (known[i].model) forget(&known[i]);
}

static void a_failed_call_leaves_what_a_step_has_left(void **unused)
{
    (void)unused;
    fail_each_call(&plainly);
    fail_each_call(&joins);
    fail_each_call(&by_several);
    fail_each_call(&by_lamb);
    fail_each_call(&by_muon);
    fail_each_call(&by_adafactor);
}

/* ---- epochs that end ------------------------------------------------------------------------- */

/* Between the end of a step and what is told of its device next. */
typedef struct epoch_end {
    const standin *s;
    int64_t out_bytes; /* since that step */
    int waits, n_step;
    int64_t most_bytes, least_bytes;
    int most_waits;
} epoch_end;

static keel_status step_ends(void *context, const keel_moment *now)
{
    epoch_end *x = context;
    (void)now;
    x->out_bytes = x->s->out_bytes;
    x->waits = x->s->waits;
    x->n_step++;
    return KEEL_OK;
}

static keel_status epoch_begins(void *context, const keel_moment *now)
{
    epoch_end *x = context;
    const int64_t bytes = x->s->out_bytes - x->out_bytes;
    const int waits = x->s->waits - x->waits;
    if (now->epoch == 0) return KEEL_OK;
    if (bytes > x->most_bytes) x->most_bytes = bytes;
    if (now->epoch == 1 || bytes < x->least_bytes) x->least_bytes = bytes;
    if (waits > x->most_waits) x->most_waits = waits;
    return KEEL_OK;
}

/* Weights and slots are copied once, whoever reads them; the host waits for that only where it
 * reads them. Else it waits for the votes alone. */
static void an_epoch_ends_with_one_copy_that_nobody_waits_for(void **unused)
{
    enum { MORE = 1024 }; /* statistics stay, places of slots are rounded, a tile has a vote */
    (void)unused;
    for (int reads = 0; reads < 2; reads++) {
        double seen = 0;
        epoch_end x = { 0 };
        const keel_callback watch = { KEEL_CALLBACK, .on_train_batch_end = step_ends,
                                      .on_epoch_begin = epoch_begins, .context = &x };
        const keel_callback reader = { KEEL_CALLBACK, .on_epoch_end = reads_a_weight,
                                       .context = &seen };
        const work by = { &of_float32, "adam" };
        keel_model *model = model_by(&by);
        const int64_t bytes = 3 * weight_bytes(model);
        keel_dataset *d = rows_of(by.r);
        machine m = machine_of(&standin_runs, 1);
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 32, .epochs = 4,
                                           .callbacks = reads ? KEEL_CALLBACKS(&watch, &reader)
                                                              : KEEL_CALLBACKS(&watch) };
        x.s = standin_of(m.device[0]);
        must(keel_fit(model, m.strategy, d, &options, NULL));
        assert_true(x.n_step > 0 && (seen != 0) == (reads > 0));
        assert_in_range(x.least_bytes, bytes - MORE, bytes + MORE);
        assert_in_range(x.most_bytes, bytes - MORE, bytes + MORE);
        assert_int_equal(x.most_waits, 1 + reads);
        assert_int_equal(x.s->looks, 4);
        close_machine(&m);
        keel_dataset_destroy(d);
        keel_model_destroy(model);
    }
}

/* Calls of the device, until the last step of the first epoch has ended, and of all; whether the
 * step behind it has ended. */
typedef struct calls {
    const standin *s;
    int until_epoch, all;
    bool step_ended;
} calls;

static keel_status counts_calls(void *context, const keel_moment *now)
{
    calls *x = context;
    if (now->epoch == 0) x->until_epoch = x->s->calls;
    x->step_ended = now->epoch > 0;
    return KEEL_OK;
}

/* What a callback has read is old once the host goes back. */
static keel_status reads_steps(void *context, const keel_moment *now)
{
    (void)context;
    assert_true(keel_model_steps_done(now->model) > 0);
    return KEEL_OK;
}

static keel_status fit_failing(outcome *o, const work *of, int fail_at, calls *x)
{
    const keel_callback counts = { KEEL_CALLBACK, .on_train_batch_end = counts_calls,
                                   .on_epoch_end = reads_steps, .context = x };
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 32, .epochs = EPOCHS,
                                       .callbacks = KEEL_CALLBACKS(&counts) };
    keel_dataset *d = rows_of(of->r);
    machine m = machine_of(&standin_runs, 1);
    standin *s = standin_of(m.device[0]);
    *x = (calls){ .s = s };
    o->model = model_by(of);
    s->fail_at = fail_at;
    must(keel_strategy_reproducible(m.strategy, of->r->shards));
    const keel_status st = keel_fit(o->model, m.strategy, d, &options, &o->history);
    x->all = s->calls;
    close_machine(&m);
    keel_dataset_destroy(d);
    return st;
}

/* Of the only device. What it sends at the end of an epoch has come with the first step of the
 * next; from then on a failure leaves that, or more. Before, it leaves some step all the same. */
static void a_failure_leaves_what_the_epoch_before_has_ended_with(void **unused)
{
    enum { STEPS_MOST = 64 };
    static const work *const works[] = { &plainly, &regularly, &by_scaled_losses };
    (void)unused;
    for (int i = 0; i < 3; i++) {
        outcome known[STEPS_MOST] = { 0 }, whole = { 0 };
        int went_back[2] = { 0 };
        calls of_all;
        must(fit_failing(&whole, works[i], 0, &of_all));
        const int64_t epoch = keel_model_steps_done(whole.model) / EPOCHS;
        for (int k = of_all.until_epoch + 1; k <= of_all.all; k += thin(1, 1, 8)) {
            outcome o = { 0 };
            calls x;
            const keel_status st = fit_failing(&o, works[i], k, &x);
            const int64_t steps = keel_model_steps_done(o.model);
            assert_true(st == (x.all < k ? KEEL_OK : KEEL_EDEVICE) && steps < STEPS_MOST);
            if (st < 0 && strstr(keel_error(), "no device has the weights any more"))
                went_back[x.step_ended]++;
            if (o.history.complete && steps < EPOCHS * epoch)
                fail_msg("call %d: the fit is complete, and %d steps are left", k, (int)steps);
            if (x.step_ended && steps < epoch)
                fail_msg("call %d: %d steps are left, and an epoch has %d", k, (int)steps,
                         (int)epoch);
            if (!known[steps].model) known[steps] = after(works[i], steps);
            compare_weights(&known[steps], &o, works[i]->r, "a failure behind an epoch");
            const keel_model_compiled *c = &o.model->compiled,
                                      *then = &known[steps].model->compiled;
            if (c->loss_scale != then->loss_scale || c->good_steps != then->good_steps)
                fail_msg("call %d: a loss scale of %g after %d good steps, where it was %g after "
                         "%d",
                         k, (double)c->loss_scale, (int)c->good_steps, (double)then->loss_scale,
                         (int)then->good_steps);
            forget(&o);
        }
        assert_true(went_back[0] > 0 && went_back[1] > 0);
        forget(&whole);
        for (int k = 0; k < STEPS_MOST; k++)
            if (known[k].model) forget(&known[k]);
    }
}

/* Of the only device: where it has taken steps along, no file has the weights before them in their
 * place. */
static void a_failure_writes_no_checkpoint_of_earlier_weights(void **unused)
{
    const char *root = getenv("KEEL_TEST_TMP");
    int moves, failed = 0;
    (void)unused;
    outcome whole = run(&plainly, host_moves(), 1, &moves);
    for (int fail_at = 0, all = 0; fail_at <= all; fail_at += thin(1, 2, 11)) {
        char folder[512];
        int64_t steps = 100; /* it has the callback of who goes on */
        const keel_callback ends = end_after(&steps);
        snprintf(folder, sizeof folder, "%s/resident-fails-%d", root ? root : "/tmp", fail_at);
        const keel_checkpoint_options c = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                            .every_steps = 2 };
        const keel_fit_options options = {
            KEEL_FIT_OPTIONS,      .batch_size = of_float32.batch_size, .epochs = EPOCHS,
            .end = of_float32.end, .callbacks = KEEL_CALLBACKS(&ends),  .checkpoint = &c
        };
        outcome o = { .model = model_by(&plainly) };
        keel_dataset *d = rows_of(&of_float32);
        machine m = machine_of(&standin_runs, 1);
        standin_of(m.device[0])->fail_at = fail_at;
        must(keel_strategy_reproducible(m.strategy, of_float32.shards));
        failed += keel_fit(o.model, m.strategy, d, &options, NULL) < 0;
        if (fail_at == 0) all = standin_of(m.device[0])->calls; /* without a failure */
        close_machine(&m);
        keel_dataset_destroy(d);
        keel_model_destroy(o.model);
        o.model = model_by(&plainly);
        (void)part_of_a_fit(o.model, folder, 1, 100);
        compare_weights(&whole, &o, &of_float32, "a fit that went on behind a failure");
        forget(&o);
    }
    assert_true(failed > 4);
    forget(&whole);
}

/* All gradients are finite, and what the only update makes is not. */
static void a_weight_that_is_not_finite_is_found_where_it_lives(void **unused)
{
    (void)unused;
    for (int devices = 1; devices <= 3; devices++) {
        float x[64], y[64] = { 0 };
        const keel_tensor tx = { KEEL_FLOAT32, { 2, { 64, 1 } }, x },
                          ty = { KEEL_FLOAT32, { 2, { 64, 1 } }, y };
        keel_model *m;
        keel_dataset *d;
        for (int i = 0; i < 64; i++) x[i] = 1e10F;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 5));
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 1))));
        must(keel_model_add(m, "Dense",
                            KEEL_ARGS(KEEL_ARG_INT("units", 1), KEEL_ARG_STR("name", "only"))));
        must(keel_model_compile(
            m, &(keel_compile){
                   KEEL_COMPILE,
                   .optimizer = { "sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 1e30)) },
                   .loss = { { "mae" } } }));
        must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
        machine s = machine_of(&standin_runs, devices);
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 64 };
        assert_int_equal(keel_fit(m, s.strategy, d, &options, NULL), KEEL_ENUMERIC);
        if (!strstr(keel_error(), "the weight 'only/kernel' is not finite, though every gradient"))
            fail_msg("%s", keel_error());
        assert_true(standin_of(s.device[0])->looks > 0);
        assert_true(close_machine(&s) > 0);
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
}

/* ---- waits ----------------------------------------------------------------------------------- */

static int waits_of(const work *of, int devices, int64_t steps, int ignore_at, const char **unseen)
{
    const keel_callback ends = end_after(&steps);
    const work x = { of->r, of->optimizer, of->args, KEEL_CALLBACKS(&ends), .multi = of->multi };
    outcome o = { .model = model_by(&x) };
    keel_dataset *d = rows_of(x.r);
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = x.r->batch_size,
                                       .epochs = EPOCHS, .callbacks = x.callbacks };
    machine m = machine_of(&standin_runs, devices);
    standin *s = standin_of(m.device[0]); /* the one that weights are fetched from */
    s->ignore_at = ignore_at;
    must(keel_strategy_reproducible(m.strategy, x.r->shards));
    must(keel_fit(o.model, m.strategy, d, &options, &o.history));
    const int waits = s->waits;
    *unseen = s->clocks.reports > 0 ? NULL : s->ignored;
    close_machine(&m);
    keel_dataset_destroy(d);
    forget(&o);
    return waits;
}

/* Of two devices, and of one that goes on behind the end of an epoch: some of its waits for the
 * compute stream are only there so that failures belong to the right step. */
static void no_wait_is_left_out_unseen(void **unused)
{
    (void)unused;
    static const struct {
        const work *x;
        int devices, steps;
    } cases[] = { { &plainly, 2, 2 },  { &joins_and_measures, 2, 2 }, { &by_lamb_measured, 2, 2 },
                  { &by_muon, 2, 2 },  { &by_adafactor, 2, 2 },       { &plainly, 1, 5 },
                  { &regularly, 1, 5 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const work *x = cases[i].x;
        const char *unseen;
        const int waits = waits_of(x, cases[i].devices, cases[i].steps, 0, &unseen);
        assert_true(waits > 8);
        for (int k = 1; k <= waits; k += thin(1, 5, 19)) {
            waits_of(x, cases[i].devices, cases[i].steps, k, &unseen);
            if (unseen && (cases[i].devices > 1 || !strstr(unseen, "the compute stream")))
                fail_msg("case %d: nobody sees that wait %d of %d is left out: of %s", (int)i, k,
                         waits, unseen);
        }
    }
}

/* ---- before step 1 --------------------------------------------------------------------------- */

static void tell(void *context, const char *line)
{
    snprintf(context, 400, "%s", line);
}

static void what_the_host_moves_is_named(void **unused)
{
    const struct {
        const char *optimizer;
        const keel_arg *args;
        const char *why; /* NULL: devices move */
    } cases[] = {
        { "adam", NULL, NULL },
        { "sgd", NULL, NULL },
        { "lamb", NULL, NULL },
        { "muon", NULL, NULL },
        { "adafactor", NULL, NULL },
        { "ftrl", NULL, NULL },
        { "ftrl", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate_power", -0.4)),
          "devices have no kernel for this optimizer" },
        { "adam", KEEL_ARGS(KEEL_ARG_BOOL("use_ema", true)), NULL },
        { "adam", KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2)), NULL },
        { "adam",
          KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2),
                    KEEL_ARG_FLOAT("clipnorm", 0.02)),
          NULL },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[400] = "", wanted[400] = "";
        keel_model *model = model_by(&(work){ &of_float32, cases[i].optimizer, cases[i].args });
        keel_dataset *d = rows_of(&of_float32);
        machine m = machine_of(&standin_runs, 2);
        const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 32,
                                           .explain_devices = tell,
                                           .explain_devices_context = line };
        must(keel_fit(model, m.strategy, d, &options, NULL));
        if (cases[i].why)
            snprintf(wanted, sizeof wanted, "the optimizer runs on the host: %s", cases[i].why);
        assert_string_equal(line, wanted);
        assert_true((close_machine(&m) > 0) == !cases[i].why);
        keel_dataset_destroy(d);
        keel_model_destroy(model);
    }
}

static int64_t planned(const char *optimizer, int64_t memory, keel_status *s)
{
    keel_model *model = model_by(&(work){ &of_float32, optimizer });
    keel_dataset *d = rows_of(&of_float32);
    machine m = machine_of(&standin_runs, 1);
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 32 };
    keel_plan p = { 0 };
    must(keel_plan_make(&p, model, m.strategy, ROWS, 32, KEEL_KEEP, NULL));
    const int64_t bytes = p.device_bytes[0];
    m.device[0]->memory = memory;
    *s = keel_fit(model, m.strategy, d, &options, NULL);
    keel_plan_free(&p);
    close_machine(&m);
    keel_dataset_destroy(d);
    keel_model_destroy(model);
    return bytes;
}

static void state_of_the_optimizer_is_planned(void **unused)
{
    keel_status s;
    (void)unused;
    const int64_t plain = planned("sgd", STANDIN_SPACE, &s);
    must(s);
    const int64_t adam = planned("adam", STANDIN_SPACE, &s);
    must(s);
    const int64_t count = 6 * 3 * 9 + 6 + 2 * 6 + 4 * 4 * 6 * CLASSES + CLASSES;
    assert_true(adam - plain >= 2 * count * 4 && adam - plain < 2 * count * 4 + 2048);
    planned("adam", adam, &s);
    must(s);
    planned("adam", adam - 1, &s);
    assert_int_equal(s, KEEL_ENOMEM);
    assert_non_null(strstr(keel_error(), "for state of the optimizer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_the_hosts_moves),
        cmocka_unit_test(gradients_stay_where_they_are_whole),
        cmocka_unit_test(a_gradient_that_is_not_finite_fails_the_step_by_its_name),
        cmocka_unit_test(callbacks_read_and_write_the_weights_of_now),
        cmocka_unit_test(a_fit_goes_on_from_what_devices_had),
        cmocka_unit_test(a_failed_call_leaves_what_a_step_has_left),
        cmocka_unit_test(an_epoch_ends_with_one_copy_that_nobody_waits_for),
        cmocka_unit_test(a_failure_leaves_what_the_epoch_before_has_ended_with),
        cmocka_unit_test(a_failure_writes_no_checkpoint_of_earlier_weights),
        cmocka_unit_test(a_weight_that_is_not_finite_is_found_where_it_lives),
        cmocka_unit_test(no_wait_is_left_out_unseen),
        cmocka_unit_test(what_the_host_moves_is_named),
        cmocka_unit_test(state_of_the_optimizer_is_planned),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
