/* The states of a function's optimizers: they are those of a fit, in the order in which files have
 * them, and another function goes on with them as if it had made all steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "model/parts.h"
#include "model/state.h"
#include "must.h"

enum { BATCH = 11, STEPS = 5, IN = 4, OUT = 3, ROWS = BATCH * STEPS, STATES = 32 };

/* ---- a network and its steps ----------------------------------------------------------------- */

static keel_model *net(keel_dtype dtype)
{
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, "net", dtype, 7));
    must(keel_model_input(m, KEEL_DIMS(IN), NULL, &x));
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", 8), KEEL_ARG_STR("activation", "tanh")), x);
    x = must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", OUT)), x);
    must(keel_model_outputs(m, &x, 1));
    return m;
}

/* A step of two models: the second learns nothing, and the first one's weights are not the first of
 * the function. */
typedef struct learner {
    keel_dtype dtype;
    keel_model *other, *model;
    keel_named optimizer;
} learner;

static keel_status learn(void *context, keel_trace *t)
{
    const learner *l = context;
    keel_traced x = -1, y = -1, z = -1;
    keel_scalar loss = -1;
    keel_gradients g = -1;
    keel_trace_input(t, "x", &x);
    keel_trace_input(t, "y", &y);
    if (l->other) keel_trace_model(t, l->other, false, &x, 1, &z);
    keel_trace_model(t, l->model, true, &x, 1, &z);
    keel_trace_loss(t, &(keel_named){ "mse" }, y, z, KEEL_UNWEIGHTED, &loss);
    keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ l->model }, 1, &g);
    keel_trace_return_scalar(t, "loss", loss);
    return keel_trace_apply(t, g, &(keel_apply){ l->optimizer });
}

static keel_status create(learner *l, keel_function **out)
{
    const keel_data_field inputs[] = { { "x", l->dtype, { 1, { IN } } },
                                       { "y", l->dtype, { 1, { OUT } } } };
    return keel_function_create(out, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = learn,
                                                               .context = l, .dtype = l->dtype,
                                                               .name = "learn", .input = inputs,
                                                               .n_input = 2 });
}

/* x and y of `rows` rows from `first` on, in each type. */
static void rows_of(keel_dtype dtype, int64_t first, int64_t rows, keel_tensor in[2])
{
    static float x[ROWS * IN], y[ROWS * OUT];
    static double xd[ROWS * IN], yd[ROWS * OUT];
    for (int i = 0; i < ROWS * IN; i++) xd[i] = x[i] = (float)(i * 37 % 64) / 32 - 1;
    for (int i = 0; i < ROWS * OUT; i++) yd[i] = y[i] = (float)(i * 29 % 50) / 25 - 1;
    const bool wide = dtype == KEEL_FLOAT64;
    in[0] = (keel_tensor){ dtype,
                           { 2, { rows, IN } },
                           wide ? (void *)(xd + first * IN) : (void *)(x + first * IN) };
    in[1] = (keel_tensor){ dtype,
                           { 2, { rows, OUT } },
                           wide ? (void *)(yd + first * OUT) : (void *)(y + first * OUT) };
}

static void run(keel_strategy *s, keel_function *f, const learner *l, int from, int to)
{
    keel_tensor in[2];
    for (int i = from; i < to; i++) {
        rows_of(l->dtype, i * BATCH, BATCH, in);
        must(keel_strategy_run(s, f, in, 2));
    }
}

static void prepare(keel_strategy *s, keel_function *f, const learner *l)
{
    keel_tensor in[2];
    rows_of(l->dtype, 0, BATCH, in);
    must(keel_strategy_prepare(s, f, in, 2));
}

static size_t bytes_of(const keel_tensor *t)
{
    return (size_t)keel_shape_count(&t->shape) * keel_dtype_size(t->dtype);
}

static void copy_weights(keel_model *to, const keel_model *from)
{
    for (int w = 0; w < keel_model_weight_count(from); w++) {
        keel_tensor t;
        must(keel_model_get_weight(from, keel_model_weight_name(from, w), &t));
        must(keel_model_set_weight(to, keel_model_weight_name(from, w), &t));
        keel_tensor_free(&t);
    }
}

static bool same_weights(const keel_model *a, const keel_model *b)
{
    bool same = true;
    for (int w = 0; w < keel_model_weight_count(a); w++) {
        keel_tensor x, y;
        must(keel_model_get_weight(a, keel_model_weight_name(a, w), &x));
        must(keel_model_get_weight(b, keel_model_weight_name(a, w), &y));
        same = same && !memcmp(x.data, y.data, bytes_of(&x));
        keel_tensor_free(&x);
        keel_tensor_free(&y);
    }
    return same;
}

/* ---- optimizers ------------------------------------------------------------------------------ */

#define EMA                                                                                        \
    KEEL_ARG_BOOL("use_ema", true), KEEL_ARG_FLOAT("ema_momentum", 0.75),                          \
        KEEL_ARG_INT("ema_overwrite_frequency", 2)

static const struct {
    const char *name;
    keel_named optimizer;
    int states; /* of four weights */
} cases[] = {
    { "SGD", { "SGD" }, 0 },
    { "SGD with momentum", { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("momentum", 0.75)) }, 4 },
    { "Adam", { "Adam" }, 8 },
    { "Adam with amsgrad", { "Adam", KEEL_ARGS(KEEL_ARG_BOOL("amsgrad", true)) }, 12 },
    { "AdamW", { "AdamW", KEEL_ARGS(KEEL_ARG_FLOAT("weight_decay", 0.1)) }, 8 },
    { "RMSprop", { "RMSprop" }, 4 },
    { "RMSprop, with momentum and centered",
      { "RMSprop", KEEL_ARGS(KEEL_ARG_FLOAT("momentum", 0.5), KEEL_ARG_BOOL("centered", true)) },
      12 },
    { "Nadam", { "Nadam" }, 9 },
    { "Adafactor", { "Adafactor" }, 12 }, /* of vectors two are marks */
    { "Lion", { "Lion" }, 4 },
    { "Ftrl", { "Ftrl", KEEL_ARGS(KEEL_ARG_FLOAT("l1_regularization_strength", 0.01)) }, 8 },
    { "Adagrad", { "Adagrad" }, 4 },
    { "Adadelta", { "Adadelta" }, 8 },
    { "Adamax", { "Adamax" }, 8 },
    { "Lamb", { "Lamb" }, 8 },
    { "Muon", { "Muon" }, -1 },
    { "ScheduleFreeAdamW", { "ScheduleFreeAdamW" }, -1 },
    { "Adam with averages", { "Adam", KEEL_ARGS(EMA) }, 12 },
    { "SGD that adds up three gradients",
      { "SGD", KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 3)) },
      4 },
    { "Nadam that adds up, with momentum and averages",
      { "Nadam", KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 2), EMA) },
      17 },
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- the states are those of a fit ----------------------------------------------------------- */

typedef struct file {
    keel_weights *weights;
    int slots;
} file;

static keel_status add(void *context, const char *path, const keel_tensor *t)
{
    return keel_weights_add(((file *)context)->weights, path, t);
}

/* What a file has after a fit of STEPS steps, without iterations and learning rate. */
static void compare_with_file(const char *name, const keel_model *m, const keel_function *f)
{
    file all = { 0 };
    char path[64];
    int64_t n = 0;
    must(keel_weights_create(&all.weights));
    must(keel_compiled_state_add(m, all.weights, add, &all));
    for (;; n++) {
        keel_tensor t;
        snprintf(path, sizeof path, "optimizer/vars/%d", (int)n + 2);
        const keel_weight *w = keel_weights_find(all.weights, path);
        if (!w) break;
        must(keel_function_state(f, 0, n, &t));
        if (!keel_shape_equal(&t.shape, &w->shape)) fail_msg("%s: the shape of %s", name, path);
        if (w->dtype == KEEL_FLOAT64 && t.dtype == KEEL_FLOAT32) /* the number */
            assert_true(*(const float *)t.data == (float)*(const double *)w->data);
        else if (w->dtype != t.dtype || memcmp(t.data, w->data, bytes_of(&t)))
            fail_msg("%s: the values of %s", name, path);
        keel_tensor_free(&t);
    }
    if (keel_function_state_count(f, 0) != n)
        fail_msg("%s: %d states, not %d", name, (int)keel_function_state_count(f, 0), (int)n);
    keel_weights_destroy(all.weights);
}

static void fit(keel_model *m, keel_strategy *s, const keel_named *optimizer)
{
    keel_dataset *d;
    keel_tensor in[2];
    rows_of(m->dtype, 0, ROWS, in);
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = *optimizer, .loss = { { "mse" } } }));
    must(keel_dataset_from_arrays(&d, &in[0], &in[1], NULL));
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH, .no_shuffle = true },
                  NULL));
    keel_dataset_destroy(d);
}

static void states_are_those_of_a_fit_in_the_order_of_files(void **unused)
{
    (void)unused;
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0"));
    for (int i = 0; i < CASES; i++)
        for (int wide = 0; wide < 2; wide++) {
            const keel_dtype dtype = wide ? KEEL_FLOAT64 : KEEL_FLOAT32;
            learner l = { dtype, net(dtype), net(dtype), cases[i].optimizer };
            keel_model *m = net(dtype);
            keel_function *f;
            must(create(&l, &f));
            prepare(s, f, &l);
            if (cases[i].states >= 0 && keel_function_state_count(f, 0) != cases[i].states)
                fail_msg("%s: %d states", cases[i].name, (int)keel_function_state_count(f, 0));
            run(s, f, &l, 0, STEPS);
            assert_int_equal(keel_function_iterations(f, 0), STEPS);
            fit(m, s, &cases[i].optimizer);
            compare_with_file(cases[i].name, m, f);
            keel_function_destroy(f);
            keel_model_destroy(m);
            keel_model_destroy(l.model);
            keel_model_destroy(l.other);
        }
    keel_strategy_destroy(s);
}

/* ---- going on -------------------------------------------------------------------------------- */

typedef struct states {
    int64_t iterations;
    int n;
    keel_tensor of[STATES];
} states;

static void take(const keel_function *f, states *out)
{
    out->iterations = keel_function_iterations(f, 0);
    out->n = (int)keel_function_state_count(f, 0);
    for (int i = 0; i < out->n; i++) must(keel_function_state(f, 0, i, &out->of[i]));
}

static void give(keel_function *f, states *from)
{
    must(keel_function_set_iterations(f, 0, from->iterations));
    assert_int_equal(keel_function_state_count(f, 0), from->n);
    for (int i = 0; i < from->n; i++) {
        must(keel_function_set_state(f, 0, i, &from->of[i]));
        keel_tensor_free(&from->of[i]);
    }
}

static void goes_on(int i, keel_dtype dtype, const char *devices, int before)
{
    learner all = { dtype, net(dtype), net(dtype), cases[i].optimizer };
    learner first = { dtype, NULL, net(dtype), cases[i].optimizer };
    learner then = { dtype, net(dtype), net(dtype), cases[i].optimizer };
    states kept;
    keel_function *f;
    keel_strategy *s;
    must(keel_strategy_create(&s, devices));
    must(create(&all, &f));
    run(s, f, &all, 0, STEPS);
    keel_function_destroy(f);
    must(create(&first, &f));
    if (before == 0) prepare(s, f, &first);
    run(s, f, &first, 0, before);
    take(f, &kept);
    assert_int_equal(kept.iterations, before);
    keel_function_destroy(f);
    must(create(&then, &f));
    prepare(s, f, &then);
    copy_weights(then.model, first.model); /* after it was prepared */
    give(f, &kept);
    run(s, f, &then, before, STEPS);
    assert_int_equal(keel_function_iterations(f, 0), STEPS);
    if (!same_weights(all.model, then.model))
        fail_msg("%s on %s, after %d steps: other weights", cases[i].name, devices, before);
    keel_function_destroy(f);
    for (int k = 0; k < 3; k++) {
        learner *l = k == 0 ? &all : k == 1 ? &first : &then;
        keel_model_destroy(l->model);
        keel_model_destroy(l->other);
    }
    keel_strategy_destroy(s);
}

static void another_function_goes_on_with_the_same_bits(void **unused)
{
    (void)unused;
    for (int i = 0; i < CASES; i++)
        for (int before = 0; before < 4; before++) {
            goes_on(i, KEEL_FLOAT32, "cpu:0", before);
            goes_on(i, KEEL_FLOAT64, "cpu:0-2", before);
        }
}

/* ---- before the first step ------------------------------------------------------------------- */

static double first_number(const keel_function *f, int64_t i)
{
    keel_tensor t;
    must(keel_function_state(f, 0, i, &t));
    const double x = ((float *)t.data)[0];
    keel_tensor_free(&t);
    return x;
}

static void set_first_weight(keel_model *m, float x)
{
    keel_tensor t;
    must(keel_model_get_weight(m, "dense/kernel", &t));
    ((float *)t.data)[0] = x;
    must(keel_model_set_weight(m, "dense/kernel", &t));
    keel_tensor_free(&t);
}

/* ScheduleFreeAdamW keeps a copy of the weight, which is the weight until it has made a step. */
static int64_t copy_of_weight(const learner *l, const keel_function *f)
{
    keel_tensor w;
    int64_t found = -1;
    must(keel_model_get_weight(l->model, "dense/kernel", &w));
    for (int64_t i = 0; i < keel_function_state_count(f, 0); i++) {
        keel_tensor t;
        must(keel_function_state(f, 0, i, &t));
        if (bytes_of(&t) == bytes_of(&w) && !memcmp(t.data, w.data, bytes_of(&w))) found = i;
        keel_tensor_free(&t);
    }
    keel_tensor_free(&w);
    assert_true(found >= 0);
    return found;
}

static void a_slot_that_begins_as_the_weight_follows_it_until_it_is_set(void **unused)
{
    (void)unused;
    keel_strategy *s;
    keel_function *f;
    keel_tensor t;
    learner l = { KEEL_FLOAT32, NULL, net(KEEL_FLOAT32), { "ScheduleFreeAdamW" } };
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(create(&l, &f));
    prepare(s, f, &l);
    const int64_t i = copy_of_weight(&l, f);
    set_first_weight(l.model, 0.5f);
    assert_true(first_number(f, i) == 0.5);
    must(keel_function_state(f, 0, i, &t));
    ((float *)t.data)[0] = 0.25f;
    must(keel_function_set_state(f, 0, i, &t));
    set_first_weight(l.model, 0.75f);
    assert_true(first_number(f, i) == 0.25);
    run(s, f, &l, 0, 1);
    const double after = first_number(f, i); /* the default rate moves it by less */
    assert_true(after != 0.25 && fabs(after - 0.25) < 0.125);
    keel_tensor_free(&t);
    keel_function_destroy(f);
    keel_model_destroy(l.model);
    keel_strategy_destroy(s);
}

/* Weights that are set between prepare and the first step are those that the first step moves. */
static void weights_may_be_set_after_a_function_was_prepared(void **unused)
{
    (void)unused;
    for (int i = 0; i < CASES; i++) {
        keel_strategy *s;
        keel_function *f;
        learner l[2];
        must(keel_strategy_create(&s, "cpu:0"));
        for (int k = 0; k < 2; k++) {
            l[k] = (learner){ KEEL_FLOAT32, NULL, net(KEEL_FLOAT32), cases[i].optimizer };
            must(create(&l[k], &f));
            if (k == 0) set_first_weight(l[k].model, 0.5f);
            prepare(s, f, &l[k]);
            if (k == 1) set_first_weight(l[k].model, 0.5f);
            run(s, f, &l[k], 0, STEPS);
            assert_int_equal(keel_function_compiled(f), 1);
            keel_function_destroy(f);
        }
        if (!same_weights(l[0].model, l[1].model)) fail_msg("%s: other weights", cases[i].name);
        for (int k = 0; k < 2; k++) keel_model_destroy(l[k].model);
        keel_strategy_destroy(s);
    }
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void is_refused(keel_status got, keel_status want, const char *text)
{
    if (got != want || !strstr(keel_error(), text))
        fail_msg("%s '%s', not '%s'", keel_status_name(got), keel_error(), text);
}

static void nothing_is_there_before_the_first_run(void **unused)
{
    (void)unused;
    static const char none[] = "learn: optimizer 0 of 0; there are none before the first run";
    keel_function *f;
    keel_tensor t;
    learner l = { KEEL_FLOAT32, NULL, net(KEEL_FLOAT32), { "Adam" } };
    must(create(&l, &f));
    assert_int_equal(keel_function_iterations(f, 0), -1);
    assert_non_null(strstr(keel_error(), none));
    assert_int_equal(keel_function_state_count(f, 0), -1);
    is_refused(keel_function_set_iterations(f, 0, 1), KEEL_EARG, none);
    is_refused(keel_function_state(f, 0, 0, &t), KEEL_EARG, none);
    is_refused(keel_function_set_state(f, 0, 0, &(keel_tensor){ 0 }), KEEL_EARG, none);
    keel_function_destroy(f);
    keel_model_destroy(l.model);
}

static void what_does_not_fit_is_refused_and_changes_nothing(void **unused)
{
    (void)unused;
    static float data[IN * 8];
    const keel_tensor fits = { KEEL_FLOAT32, { 2, { IN, 8 } }, data };
    const keel_tensor turned = { KEEL_FLOAT32, { 2, { 8, IN } }, data };
    const keel_tensor wide = { KEEL_FLOAT64, { 2, { IN, 8 } }, data };
    const keel_tensor empty = { KEEL_FLOAT32, { 2, { IN, 8 } }, NULL };
    keel_strategy *s;
    keel_function *f;
    keel_tensor t, in[2];
    learner l = { KEEL_FLOAT32, NULL, net(KEEL_FLOAT32), { "Nadam" } };
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(create(&l, &f));
    run(s, f, &l, 0, 2);
    const double before = first_number(f, 0), number = first_number(f, 8);
    is_refused(keel_function_state(f, 1, 0, &t), KEEL_EARG, "learn: optimizer 1 of 1");
    is_refused(keel_function_state(f, 0, 9, &t), KEEL_EARG, "state 9 of 9 of optimizer 0");
    is_refused(keel_function_state(f, 0, -1, &t), KEEL_EARG, "state -1 of 9 of optimizer 0");
    is_refused(keel_function_set_state(f, 0, 9, &fits), KEEL_EARG, "state 9 of 9");
    is_refused(keel_function_set_state(f, 0, 0, &turned), KEEL_ESHAPE,
               "learn: state 0, 'momentum' of 'dense/kernel', has the shape (4, 8), and is given "
               "(8, 4)");
    is_refused(keel_function_set_state(f, 0, 0, &wide), KEEL_EARG,
               "'dense/kernel', is of float32, and is given float64");
    is_refused(keel_function_set_state(f, 0, 0, &empty), KEEL_EARG, "is given no data");
    is_refused(keel_function_set_state(f, 0, 8, &fits), KEEL_ESHAPE, "state 8, the number, has");
    is_refused(keel_function_set_iterations(f, 0, -1), KEEL_EARG, "-1 iterations of optimizer 0");
    is_refused(keel_function_set_iterations(f, 0, INT64_MAX), KEEL_EARG, "iterations of");
    rows_of(KEEL_FLOAT32, 0, BATCH, in);
    is_refused(keel_strategy_prepare(s, f, in, 1), KEEL_EARG, "learn: it has 2 inputs");
    assert_int_equal(keel_function_iterations(f, 0), 2);
    assert_int_equal(keel_function_iterations(f, 1), -1);
    assert_true(before == first_number(f, 0) && number == first_number(f, 8));
    keel_function_destroy(f);
    keel_model_destroy(l.model);
    keel_strategy_destroy(s);
}

typedef struct meanwhile {
    keel_function *f;
    const keel_tensor *value;
    keel_status status;
    char text[256];
} meanwhile;

static keel_status set_in_a_fit(void *context, const keel_moment *unused)
{
    meanwhile *m = context;
    keel_tensor t;
    (void)unused;
    must(keel_function_state(m->f, 0, 0, &t));
    keel_tensor_free(&t);
    m->status = keel_function_set_state(m->f, 0, 0, m->value);
    snprintf(m->text, sizeof m->text, "%s", keel_error());
    return KEEL_OK;
}

/* Before the first step a state may be a weight, which is looked for where it is. */
static void no_state_is_set_first_while_the_model_is_elsewhere(void **unused)
{
    (void)unused;
    keel_strategy *s, *others;
    keel_function *f;
    keel_dataset *d;
    keel_tensor t, in[2];
    learner l = { KEEL_FLOAT32, NULL, net(KEEL_FLOAT32), { "ScheduleFreeAdamW" } };
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_strategy_create(&others, "cpu:0"));
    must(create(&l, &f));
    prepare(s, f, &l);
    must(keel_function_state(f, 0, 0, &t));
    meanwhile m = { .f = f, .value = &t };
    const keel_callback c = { KEEL_CALLBACK, .context = &m, .on_epoch_end = set_in_a_fit };
    rows_of(KEEL_FLOAT32, 0, ROWS, in);
    must(keel_dataset_from_arrays(&d, &in[0], &in[1], NULL));
    must(keel_model_compile(
        l.model, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
    must(keel_fit(l.model, others, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .callbacks = KEEL_CALLBACKS(&c) }, NULL));
    assert_int_equal(m.status, KEEL_EARG);
    assert_non_null(strstr(m.text, "learn: running a step: the model 'net' is in use by the fit"));
    must(keel_model_set_dtype(l.model, KEEL_FLOAT64));
    is_refused(keel_function_set_state(f, 0, 0, &t), KEEL_EARG, "has become float64");
    keel_tensor_free(&t);
    must(keel_function_state(f, 0, 0, &t));
    must(keel_model_set_dtype(l.model, KEEL_FLOAT32));
    must(keel_function_set_state(f, 0, 0, &t));
    keel_tensor_free(&t);
    run(s, f, &l, 0, 1);
    keel_function_destroy(f);
    keel_dataset_destroy(d);
    keel_model_destroy(l.model);
    keel_strategy_destroy(others);
    keel_strategy_destroy(s);
}

/* A step by a rate of 0 that was set before it moves nothing; results come with the step. */
static void a_rate_may_be_set_before_the_first_step(void **unused)
{
    (void)unused;
    keel_strategy *s;
    keel_function *f;
    double rate;
    learner l = { KEEL_FLOAT32, NULL, net(KEEL_FLOAT32), { "SGD" } };
    keel_model *before = net(KEEL_FLOAT32);
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(create(&l, &f));
    prepare(s, f, &l);
    must(keel_function_learning_rate(f, 0, &rate));
    assert_true(fabs(rate - 0.01) < 1e-6);
    must(keel_function_set_learning_rate(f, 0, 0));
    is_refused(keel_function_scalar(f, "loss", &rate), KEEL_EARG, "there is no result 'loss'");
    run(s, f, &l, 0, 1);
    assert_true(same_weights(before, l.model));
    must(keel_function_scalar(f, "loss", &rate));
    prepare(s, f, &l);
    is_refused(keel_function_scalar(f, "loss", &rate), KEEL_EARG, "there is no result 'loss'");
    assert_int_equal(keel_function_compiled(f), 1);
    keel_function_destroy(f);
    keel_model_destroy(before);
    keel_model_destroy(l.model);
    keel_strategy_destroy(s);
}

/* What Keras has in the place of a slot that is not kept. */
static void a_mark_is_read_and_set_as_a_whole_number(void **unused)
{
    (void)unused;
    static int32_t zero;
    static float real;
    keel_strategy *s;
    keel_function *f;
    keel_tensor t;
    int marks = 0;
    learner l = { KEEL_FLOAT32, NULL, net(KEEL_FLOAT32), { "Adafactor" } };
    must(keel_strategy_create(&s, "cpu:0"));
    must(create(&l, &f));
    prepare(s, f, &l);
    for (int64_t i = 0; i < keel_function_state_count(f, 0); i++) {
        must(keel_function_state(f, 0, i, &t));
        if (t.dtype == KEEL_INT32) {
            assert_int_equal(t.shape.rank, 0);
            assert_int_equal(*(int32_t *)t.data, 0);
            must(keel_function_set_state(f, 0, i, &(keel_tensor){ KEEL_INT32, { 0 }, &zero }));
            is_refused(
                keel_function_set_state(f, 0, i, &(keel_tensor){ KEEL_FLOAT32, { 0 }, &real }),
                KEEL_EARG, "is of int32");
            marks++;
        }
        keel_tensor_free(&t);
    }
    assert_true(marks > 0);
    keel_function_destroy(f);
    keel_model_destroy(l.model);
    keel_strategy_destroy(s);
}

static keel_status prepare_and_go_on(keel_strategy *s, learner *l, keel_function **f)
{
    keel_tensor in[2], t;
    keel_status st = create(l, f);
    rows_of(KEEL_FLOAT32, 0, BATCH, in);
    if (st >= 0) st = keel_strategy_prepare(s, *f, in, 2);
    for (int64_t i = 0; i < 9 && st >= 0; i++) {
        if ((st = keel_function_state(*f, 0, i, &t)) < 0) break;
        st = keel_function_set_state(*f, 0, i, &t);
        keel_tensor_free(&t);
    }
    if (st >= 0 && keel_function_state_count(*f, 0) < 0) st = KEEL_ENOMEM;
    return st < 0 ? st : keel_strategy_run(s, *f, in, 2);
}

/* How far a step of AdamW with decay leaves a number of the kernel from a step without. */
static float decayed_by(const char *weight, bool excluded)
{
    float first[2];
    for (int k = 0; k < 2; k++) {
        learner l = { KEEL_FLOAT32,
                      NULL,
                      net(KEEL_FLOAT32),
                      { "AdamW", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.1),
                                           KEEL_ARG_FLOAT("weight_decay", k * 0.5)) } };
        keel_function *f;
        keel_strategy *s;
        keel_tensor t;
        if (excluded) must(keel_model_exclude_from_weight_decay(l.model, &weight, 1));
        must(keel_strategy_create(&s, "cpu:0-1"));
        must(create(&l, &f));
        run(s, f, &l, 0, 1);
        must(keel_model_get_weight(l.model, "dense/kernel", &t));
        first[k] = ((float *)t.data)[0];
        keel_tensor_free(&t);
        keel_function_destroy(f);
        keel_strategy_destroy(s);
        keel_model_destroy(l.model);
    }
    return fabsf(first[0] - first[1]);
}

static void a_function_decays_no_weight_that_its_model_excludes(void **unused)
{
    (void)unused;
    assert_true(decayed_by("dense/kernel", false) > 1e-3f);
    assert_true(decayed_by("bias", true) > 1e-3f);
    assert_true(decayed_by("dense/kernel", true) == 0);
}

static void each_failing_allocation_is_an_error_without_a_leak(void **unused)
{
    (void)unused;
    learner l = { KEEL_FLOAT32, NULL, net(KEEL_FLOAT32), { "Nadam" } };
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0"));
    const int64_t live = keel_memory_live();
    keel_status st = KEEL_ENOMEM;
    for (int64_t at = 0; st < 0; at++) {
        keel_function *f = NULL;
        keel_memory_fail_at(at);
        st = prepare_and_go_on(s, &l, &f);
        keel_memory_fail_at(-1);
        if (st < 0 && st != KEEL_ENOMEM) fail_msg("allocation %d: %s", (int)at, keel_error());
        if (st < 0 && f) run(s, f, &l, 0, 1); /* it can go on */
        keel_function_destroy(f);
        assert_int_equal(keel_memory_live(), live);
        assert_true(at < 5000);
    }
    keel_strategy_destroy(s);
    keel_model_destroy(l.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_those_of_a_fit_in_the_order_of_files),
        cmocka_unit_test(another_function_goes_on_with_the_same_bits),
        cmocka_unit_test(a_slot_that_begins_as_the_weight_follows_it_until_it_is_set),
        cmocka_unit_test(weights_may_be_set_after_a_function_was_prepared),
        cmocka_unit_test(nothing_is_there_before_the_first_run),
        cmocka_unit_test(what_does_not_fit_is_refused_and_changes_nothing),
        cmocka_unit_test(no_state_is_set_first_while_the_model_is_elsewhere),
        cmocka_unit_test(a_rate_may_be_set_before_the_first_step),
        cmocka_unit_test(a_mark_is_read_and_set_as_a_whole_number),
        cmocka_unit_test(a_function_decays_no_weight_that_its_model_excludes),
        cmocka_unit_test(each_failing_allocation_is_an_error_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
