/* Functions (keel/function.h): results of rows on unequal and empty devices, applying on a
 * condition, what is refused, failures. That they learn the right thing is in test_loops.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "loops.h"
#include "optimizers/optimizer.h"

/* ---- results --------------------------------------------------------------------------------- */

static keel_status look(void *context, keel_trace *t)
{
    (void)context;
    static const struct {
        const char *name;
        keel_fact fact;
    } facts[] = {
        { "rows", KEEL_FACT_ROWS },
        { "weights", KEEL_FACT_WEIGHTS },
        { "row", KEEL_FACT_ROW },
        { "device", KEEL_FACT_DEVICE },
        { "first", KEEL_FACT_DEVICE_FIRST },
        { "own", KEEL_FACT_DEVICE_ROWS },
    };
    keel_scalar mean = -1;
    const keel_traced x = loop_input(t, "x");
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        keel_traced v = -1;
        keel_trace_fact(t, facts[i].fact, &v);
        keel_trace_return(t, facts[i].name, v);
    }
    keel_trace_mean(t, x, loop_input(t, "w"), &mean);
    keel_trace_return(t, "x",
                      loop_call(t, "ops.Negative", NULL, loop_call(t, "ops.Negative", NULL, x)));
    return keel_trace_return_scalar(t, "mean", mean);
}

static void is_reduced(const keel_function *f, const char *name, keel_rows_op how, double want)
{
    keel_tensor t;
    must(keel_reduce(f, name, how, &t));
    if (loop_number(&t, 0) != want)
        fail_msg("%s, %d: %g, not %g", name, (int)how, loop_number(&t, 0), want);
    keel_tensor_free(&t);
}

/* Rows of 3 i, 3 i + 1, 3 i + 2; weights i % 2. */
static void reduce_rows(keel_strategy *s, keel_function *f, int64_t n)
{
    float x[3 * 33], w[33];
    keel_tensor in[] = { { KEEL_FLOAT32, { 2, { n, 3 } }, x }, { KEEL_FLOAT32, { 1, { n } }, w } };
    keel_tensor t;
    double mean, weighted = 0, last = 0, first = 0;
    for (int64_t i = 0; i < 3 * n; i++) x[i] = (float)i;
    for (int64_t i = 0; i < n; i++) w[i] = (float)(i % 2);
    for (int64_t i = 1; i < n; i += 2) weighted += (double)(3 * i + 1);
    must(keel_strategy_run(s, f, in, 2));
    is_reduced(f, "x", KEEL_ROWS_SUM, (double)(3 * n * (n - 1) / 2));
    is_reduced(f, "x", KEEL_ROWS_MEAN, (double)(3 * (n - 1)) / 2);
    is_reduced(f, "x", KEEL_ROWS_MIN, 0);
    is_reduced(f, "x", KEEL_ROWS_MAX, (double)(3 * (n - 1)));
    is_reduced(f, "rows", KEEL_ROWS_MEAN, (double)n);
    is_reduced(f, "weights", KEEL_ROWS_MIN, (double)(n / 2));
    must(keel_function_scalar(f, "mean", &mean));
    assert_true(fabs(mean - weighted / (double)n) < 1e-5);
    must(keel_gather(f, "x", &t));
    assert_int_equal(t.shape.rank, 2);
    assert_int_equal(t.shape.dim[0], n);
    assert_memory_equal(t.data, x, (size_t)(3 * n) * sizeof *x);
    keel_tensor_free(&t);
    for (int d = 0; d < keel_strategy_devices(s); d++) {
        const int64_t own = keel_strategy_rows(s, d, n);
        const char *const names[] = { "row", "device", "first", "own" };
        for (int k = 0; k < 4 && own > 0; k++) {
            must(keel_gather(f, names[k], &t));
            first = loop_number(&t, (int64_t)last);
            assert_int_equal(first, k == 0 || k == 2 ? last : k == 1 ? d : (double)own);
            keel_tensor_free(&t);
        }
        last += (double)own;
    }
    assert_int_equal(last, n);
}

static keel_function *look_at_rows(void)
{
    keel_function *f;
    const keel_data_field in[] = { { "x", KEEL_FLOAT32, { 1, { 3 } } },
                                   { "w", KEEL_FLOAT32, { 0 }, KEEL_ROLE_WEIGHT } };
    must(keel_function_create(&f,
                              &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .name = "look",
                                                        .step = look, .input = in, .n_input = 2 }));
    return f;
}

static void results_are_those_of_all_rows_on_unequal_and_empty_devices(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3", "cpu:0-4" };
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        keel_strategy *s;
        keel_function *f = look_at_rows();
        must(keel_strategy_create(&s, devices[i]));
        reduce_rows(s, f, 33);
        reduce_rows(s, f, 3); /* of five devices two have none */
        reduce_rows(s, f, 1);
        assert_int_equal(keel_function_compiled(f), 1);
        keel_function_destroy(f);
        keel_strategy_destroy(s);
    }
}

/* ---- applying -------------------------------------------------------------------------------- */

typedef struct applying {
    loop loop;
    keel_apply apply;
    int asked;
    double norm[STEPS];
} applying;

static bool every_third(void *context, const keel_applying *now)
{
    applying *a = context;
    a->norm[a->asked++] = now->gradient_norm;
    return now->rows == BATCH && a->asked % 3 == 0;
}

static bool if_small(void *context, const keel_applying *now)
{
    applying *a = context;
    a->norm[a->asked++] = now->gradient_norm;
    return now->gradient_norm < 0.5;
}

static keel_status fit_line(void *context, keel_trace *t)
{
    applying *a = context;
    keel_scalar loss = -1;
    keel_apply apply = a->apply;
    apply.context = a;
    keel_trace_loss(t, &(keel_named){ "mse" }, loop_input(t, "b"),
                    loop_model(t, a->loop.model[0], true, loop_input(t, "a")), KEEL_UNWEIGHTED,
                    &loss);
    loop_learn(t, &(keel_term){ loss, 1 }, 1, a->loop.model[0], &apply);
    return keel_trace_return_scalar(t, "loss", loss);
}

static const struct apply_case {
    const char *name;
    keel_apply apply;
    int moves; /* of STEPS steps, how many change weights; -1: some */
} applies[] = {
    { "clipped by the norm of all",
      { { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("global_clipnorm", 0.125)) } },
      STEPS },
    { "clipped by value", { { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("clipvalue", 0.01)) } }, STEPS },
    { "added up over four steps",
      { { "SGD", KEEL_ARGS(KEEL_ARG_INT("gradient_accumulation_steps", 4)) } },
      STEPS / 4 },
    { "applied every third time", { { "adam" }, every_third }, STEPS / 3 },
    { "applied if the gradient is small", { { "SGD" }, if_small }, -1 },
};

static void square(loop *l)
{
    keel_model *m = loop_net(l->dtype, "line", "[6]");
    loop_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 8), KEEL_ARG_STR("activation", "tanh")));
    loop_add(m, "Dense", UNITS(6));
    loop_fill(m, 0);
    l->model[0] = m;
    l->n_input = 2;
    l->rows[0] = loop_rows(l->dtype, KEEL_DIMS(6), 5);
    l->rows[1] = loop_rows(l->dtype, KEEL_DIMS(6), 6);
    l->input[0] = (keel_data_field){ "a", l->dtype, *KEEL_DIMS(6) };
    l->input[1] = (keel_data_field){ "b", l->dtype, *KEEL_DIMS(6) };
}

static double kernel_at(const keel_model *m, int64_t i)
{
    keel_tensor t;
    must(keel_model_get_weight(m, "dense/kernel", &t));
    const double x = loop_number(&t, i);
    keel_tensor_free(&t);
    return x;
}

/* Weights after STEPS steps, in `out` [WEIGHTS]; returns how many steps changed them. */
enum { KERNEL = 48 };

static int apply_on(const struct apply_case *c, const char *devices, double *out, applying *a)
{
    keel_strategy *s;
    keel_function *f;
    int moves = 0;
    *a = (applying){ .apply = c->apply, .loop = { .dtype = KEEL_FLOAT64 } };
    square(&a->loop);
    must(keel_strategy_create(&s, devices));
    must(
        keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = fit_line,
                                                           .context = a, .dtype = KEEL_FLOAT64,
                                                           .input = a->loop.input, .n_input = 2 }));
    for (int64_t step = 0; step < STEPS; step++) {
        const int64_t first = step * BATCH, n = ROWS - first < BATCH ? ROWS - first : BATCH;
        keel_tensor in[2];
        const double before = kernel_at(a->loop.model[0], 0);
        for (int i = 0; i < 2; i++) in[i] = loop_part(&a->loop.rows[i], first, n);
        must(keel_strategy_run(s, f, in, 2));
        moves += before != kernel_at(a->loop.model[0], 0);
    }
    for (int64_t i = 0; i < KERNEL; i++) out[i] = kernel_at(a->loop.model[0], i);
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    loop_free(&a->loop);
    return moves;
}

static void steps_are_clipped_added_up_and_left_out_alike_on_any_devices(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0-1", "cpu:0-2", "cpu:0-3" };
    for (size_t i = 0; i < sizeof applies / sizeof *applies; i++) {
        const struct apply_case *c = &applies[i];
        double one[KERNEL], more[KERNEL];
        applying a, b;
        const int moves = apply_on(c, "cpu:0", one, &a);
        if (c->moves >= 0 ? moves != c->moves : moves < 1 || moves >= STEPS)
            fail_msg("%s: %d steps moved", c->name, moves);
        for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
            if (apply_on(c, devices[d], more, &b) != moves)
                fail_msg("%s: other steps moved on %s", c->name, devices[d]);
            for (int k = 0; k < KERNEL; k++)
                if (fabs(one[k] - more[k]) > 1e-12)
                    fail_msg("%s: %.17g and %.17g on %s", c->name, one[k], more[k], devices[d]);
            assert_int_equal(a.asked, b.asked);
            for (int k = 0; k < a.asked; k++) assert_true(fabs(a.norm[k] - b.norm[k]) < 1e-12);
        }
    }
}

/* The same steps by a fit. */
static void fit_instead(const char *optimizer, const char *devices, double *out)
{
    loop l = { .dtype = KEEL_FLOAT64 };
    keel_strategy *s;
    keel_dataset *d;
    square(&l);
    must(keel_strategy_create(&s, devices));
    must(keel_dataset_from_arrays(&d, &l.rows[0], &l.rows[1], NULL));
    must(keel_model_compile(l.model[0], &(keel_compile){ KEEL_COMPILE, .optimizer = { optimizer },
                                                         .loss = { { "mse" } } }));
    must(keel_fit(l.model[0], s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH, .no_shuffle = true },
                  NULL));
    for (int64_t i = 0; i < KERNEL; i++) out[i] = kernel_at(l.model[0], i);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    loop_free(&l);
}

static void every_optimizer_moves_as_in_a_fit(void **unused)
{
    (void)unused;
    for (int i = 0; keel_optimizers[i]; i++) {
        const struct apply_case c = { .apply = { { keel_optimizers[i]->type.name } } };
        double own[KERNEL], of_fit[KERNEL];
        applying a;
        apply_on(&c, "cpu:0-1", own, &a);
        fit_instead(keel_optimizers[i]->type.name, "cpu:0-1", of_fit);
        for (int k = 0; k < KERNEL; k++)
            if (fabs(own[k] - of_fit[k]) > 1e-12)
                fail_msg("%s: %.17g, by a fit %.17g", keel_optimizers[i]->type.name, own[k],
                         of_fit[k]);
    }
}

/* Two models, each with its own weights of rows. */
static keel_status two_of_all(void *context, keel_trace *t)
{
    const loop *l = context;
    for (int m = 0; m < 2; m++) {
        keel_scalar loss = -1;
        const keel_traced p = loop_model(t, l->model[m], true, loop_input(t, m ? "y" : "x"));
        keel_trace_mean(t, p, loop_input(t, m ? "v" : "w"), &loss);
        loop_learn(t, &(keel_term){ loss, 1 }, 1, l->model[m], &(keel_apply){ { "adam" } });
    }
    return KEEL_OK;
}

static double first_weight(const keel_model *m)
{
    keel_tensor t;
    must(keel_model_get_weight(m, "dense/kernel", &t));
    const double x = loop_number(&t, 0);
    keel_tensor_free(&t);
    return x;
}

static void an_optimizer_without_weighted_rows_does_not_move(void **unused)
{
    (void)unused;
    static float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, ones[4] = { 1, 1, 1, 1 }, none[4];
    loop l = { .dtype = KEEL_FLOAT32 };
    keel_strategy *s;
    keel_function *f;
    const keel_data_field in[] = { { "x", KEEL_FLOAT32, { 1, { 2 } } },
                                   { "y", KEEL_FLOAT32, { 1, { 2 } } },
                                   { "w", KEEL_FLOAT32, { 0 }, KEEL_ROLE_WEIGHT },
                                   { "v", KEEL_FLOAT32, { 0 }, KEEL_ROLE_WEIGHT } };
    for (int m = 0; m < 2; m++) {
        l.model[m] = loop_net(KEEL_FLOAT32, m ? "second" : "first", "[2]");
        loop_add(l.model[m], "Dense", UNITS(3));
    }
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS,
                                                            .step = two_of_all, .context = &l,
                                                            .input = in, .n_input = 4 }));
    for (int step = 0; step < 4; step++) {
        const bool moves[2] = { step != 1 && step != 3, step != 2 && step != 3 };
        const double before[2] = { first_weight(l.model[0]), first_weight(l.model[1]) };
        const keel_tensor given[] = { { KEEL_FLOAT32, { 2, { 4, 2 } }, x },
                                      { KEEL_FLOAT32, { 2, { 4, 2 } }, x },
                                      { KEEL_FLOAT32, { 1, { 4 } }, moves[0] ? ones : none },
                                      { KEEL_FLOAT32, { 1, { 4 } }, moves[1] ? ones : none } };
        must(keel_strategy_run(s, f, given, 4));
        for (int m = 0; m < 2; m++)
            assert_int_equal(before[m] != first_weight(l.model[m]), moves[m]);
    }
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    loop_free(&l);
}

typedef struct listener {
    loop l;
    keel_applying now; /* of the second optimizer */
} listener;

static bool only_once(void *context, const keel_applying *now)
{
    listener *who = context;
    who->now = *now;
    return now->applied == 0; /* the first step, and no more */
}

/* Two models, of which the second has two terms. */
static keel_status of_two_terms(void *context, keel_trace *t)
{
    const listener *who = context;
    keel_term term[3] = { { -1, 1 }, { -1, 1 }, { -1, 0.25 } };
    const keel_traced x = loop_input(t, "x");
    for (int k = 0; k < 3; k++)
        keel_trace_loss(t, &(keel_named){ k == 2 ? "mae" : "mse" }, x,
                        loop_model(t, who->l.model[k > 0], true, x), KEEL_UNWEIGHTED,
                        &term[k].scalar);
    loop_learn(t, term, 1, who->l.model[0], &(keel_apply){ { "adam" } });
    loop_learn(t, term + 1, 2, who->l.model[1], &(keel_apply){ { "adam" }, only_once, context });
    keel_trace_return_scalar(t, "mse", term[1].scalar);
    return keel_trace_return_scalar(t, "mae", term[2].scalar);
}

static void who_decides_knows_the_loss_and_how_often_it_was_applied(void **unused)
{
    (void)unused;
    static float x[6] = { 1, -2, 3, 4, -5, 6 };
    listener who = { .l = { .dtype = KEEL_FLOAT32 } };
    keel_strategy *s;
    keel_function *f;
    const keel_data_field in = { "x", KEEL_FLOAT32, { 1, { 2 } } };
    for (int m = 0; m < 2; m++) {
        who.l.model[m] = loop_net(KEEL_FLOAT32, m ? "second" : "first", "[2]");
        loop_add(who.l.model[m], "Dense", UNITS(2));
    }
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS,
                                                            .step = of_two_terms, .context = &who,
                                                            .input = &in, .n_input = 1 }));
    for (int step = 0; step < 3; step++) {
        double mse, mae;
        must(keel_strategy_run(s, f, &(keel_tensor){ KEEL_FLOAT32, { 2, { 3, 2 } }, x }, 1));
        must(keel_function_scalar(f, "mse", &mse));
        must(keel_function_scalar(f, "mae", &mae));
        assert_true(mse > 1 && fabs(who.now.loss - (mse + 0.25 * mae)) < 1e-12);
        assert_int_equal(who.now.rows, 3);
        assert_int_equal(who.now.applied, step > 0);
    }
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    loop_free(&who.l);
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

/* Steps that are refused. The models are those of the GAN. */
static keel_status refused_input(void *context, keel_trace *t)
{
    (void)context;
    keel_traced x = loop_input(t, "nothing");
    return keel_trace_return(t, "x", x);
}

static keel_status refused_shape(void *context, keel_trace *t)
{
    const loop *l = context;
    return keel_trace_return(t, "y", loop_model(t, l->model[1], true, loop_input(t, "z1")));
}

static keel_status refused_layer(void *context, keel_trace *t)
{
    (void)context;
    return keel_trace_return(t, "y", loop_call(t, "Dense", UNITS(3), loop_input(t, "z1")));
}

static keel_status refused_unapplied(void *context, keel_trace *t)
{
    const loop *l = context;
    keel_gradients g = -1;
    const keel_scalar loss = loop_judge(t, l, loop_input(t, "real"), "ops.ZerosLike");
    loop_learn(t, &(keel_term){ loss, 1 }, 1, l->model[1], &(keel_apply){ { "adam" } });
    return keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ l->model[1] }, 1,
                                &g);
}

static keel_status refused_twice(void *context, keel_trace *t)
{
    const loop *l = context;
    const keel_scalar loss = loop_judge(t, l, loop_input(t, "real"), "ops.ZerosLike");
    for (int i = 0; i < 2; i++)
        loop_learn(t, &(keel_term){ loss, 1 }, 1, l->model[1], &(keel_apply){ { "adam" } });
    return KEEL_OK;
}

static keel_status refused_way(void *context, keel_trace *t)
{
    const loop *l = context;
    const keel_scalar loss =
        loop_judge(t, l, loop_model(t, l->model[0], true, loop_input(t, "z1")), "ops.ZerosLike");
    loop_learn(t, &(keel_term){ loss, -1 }, 1, l->model[0], &(keel_apply){ { "adam" } });
    loop_learn(t, &(keel_term){ loss, 1 }, 1, l->model[1], &(keel_apply){ { "adam" } });
    return KEEL_OK;
}

static keel_status refused_leak(void *context, keel_trace *t)
{
    const loop *l = context;
    keel_scalar mean = -1;
    const keel_traced fake = loop_model(t, l->model[0], true, loop_input(t, "z1"));
    const keel_scalar loss = loop_judge(t, l, fake, "ops.ZerosLike");
    keel_trace_mean(t, fake, KEEL_UNWEIGHTED, &mean);
    loop_learn(t, &(keel_term){ loss, 1 }, 1, l->model[1], &(keel_apply){ { "adam" } });
    loop_learn(t, &(keel_term){ mean, 1 }, 1, l->model[0], &(keel_apply){ { "adam" } });
    return KEEL_OK;
}

static keel_status refused_target(void *context, keel_trace *t)
{
    const loop *l = context;
    keel_scalar loss = -1;
    const keel_traced p = loop_model(t, l->model[1], true, loop_input(t, "real"));
    keel_trace_loss(t, &(keel_named){ "mse" }, p,
                    loop_model(t, l->model[1], true, loop_input(t, "real")), KEEL_UNWEIGHTED,
                    &loss);
    loop_learn(t, &(keel_term){ loss, 1 }, 1, l->model[1], &(keel_apply){ { "adam" } });
    return KEEL_OK;
}

static keel_status refused_loss(void *context, keel_trace *t)
{
    (void)context;
    keel_scalar loss = -1;
    const keel_traced x = loop_input(t, "real");
    return keel_trace_loss(t, NULL, x, x, KEEL_UNWEIGHTED, &loss);
}

static keel_status refused_op(void *context, keel_trace *t)
{
    const loop *l = context;
    const keel_traced x = loop_input(t, "real");
    keel_traced slope = -1;
    return keel_trace_gradient_of(t, loop_model(t, l->model[1], true, x), x, &slope);
}

static keel_status refused_optimizer(void *context, keel_trace *t)
{
    const loop *l = context;
    const keel_scalar loss = loop_judge(t, l, loop_input(t, "real"), "ops.ZerosLike");
    loop_learn(t, &(keel_term){ loss, 1 }, 1, l->model[1], &(keel_apply){ { "Eve" } });
    return KEEL_OK;
}

static keel_status refused_itself(void *context, keel_trace *t)
{
    (void)context;
    (void)t;
    return keel_error_set(KEEL_EIO, "no camera");
}

static keel_status refused_silently(void *context, keel_trace *t)
{
    (void)context;
    (void)t;
    return KEEL_EIO;
}

static const struct refusal {
    const char *name;
    keel_step step;
    keel_status status;
    const char *text;
} refusals[] = {
    { "an input that is not there", refused_input, KEEL_EARG, "no input 'nothing'" },
    { "a text of the step's own", refused_itself, KEEL_EIO, "no camera" },
    { "a status without a text", refused_silently, KEEL_EIO, "the step returned KEEL_EIO" },
    { "inputs of another shape", refused_shape, KEEL_ESHAPE, "model 'discriminator'" },
    { "a layer with weights", refused_layer, KEEL_EUNSUP, "belongs to a model" },
    { "gradients that nothing takes", refused_unapplied, KEEL_EARG, "not applied" },
    { "two optimizers of one weight", refused_twice, KEEL_EARG, "move the same weight" },
    { "a layer on two ways", refused_way, KEEL_EUNSUP, "the way of two gradients" },
    { "a gradient that leaves its way", refused_leak, KEEL_EUNSUP, "ops.StopGradient" },
    { "targets that are trained", refused_target, KEEL_EUNSUP, "its targets depend" },
    { "no loss", refused_loss, KEEL_EARG, "a loss must be given" },
    { "an op without second derivative", refused_op, KEEL_EUNSUP, "layer 'global_max_pooling2d'" },
    { "an optimizer that is not there", refused_optimizer, KEEL_EUNSUP, "Eve" },
};

static void steps_that_cannot_be_exact_are_refused_by_name(void **unused)
{
    (void)unused;
    keel_strategy *s;
    loop l = { .dtype = KEEL_FLOAT32 };
    keel_tensor in[INPUTS];
    loop_create_gan(&l);
    must(keel_strategy_create(&s, "cpu:0-1"));
    for (int i = 0; i < l.n_input; i++) in[i] = loop_part(&l.rows[i], 0, BATCH);
    const int64_t live = keel_memory_live();
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        l.step[0] = r->step;
        keel_function *f = loop_function(&l, 0);
        const keel_status st = keel_strategy_run(s, f, in, l.n_input);
        if (st != r->status || !strstr(keel_error(), r->text))
            fail_msg("%s: %d, %s", r->name, (int)st, keel_error());
        keel_function_destroy(f);
        assert_int_equal(keel_memory_live(), live);
    }
    keel_strategy_destroy(s);
    loop_free(&l);
}

/* What only a fit can do. */
static void strategies_that_are_of_fits_are_refused(void **unused)
{
    (void)unused;
    static const char *const says[] = { "shards the optimizer", "of micro-batches" };
    keel_tensor in[INPUTS];
    for (int k = 0; k < 2; k++) {
        keel_strategy *s;
        loop l = { .dtype = KEEL_FLOAT32 };
        loop_create_gan(&l);
        l.step[0] = look;
        must(keel_strategy_create(&s, "cpu:0-1"));
        must(k ? keel_strategy_micro_batch(s, 2) : keel_strategy_shard_optimizer(s, true));
        for (int i = 0; i < l.n_input; i++) in[i] = loop_part(&l.rows[i], 0, BATCH);
        keel_function *f = loop_function(&l, 0);
        assert_int_equal(keel_strategy_run(s, f, in, l.n_input), KEEL_EUNSUP);
        assert_non_null(strstr(keel_error(), says[k]));
        keel_function_destroy(f);
        keel_strategy_destroy(s);
        loop_free(&l);
    }
}

/* A step with a row that is no number; then the same rows without it. */
static void a_failed_step_leaves_no_trace(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0", "cpu:0-2" };
    for (int d = 0; d < 2; d++) {
        loop l = { .dtype = KEEL_FLOAT32, .step = { loop_compare } };
        keel_strategy *s;
        keel_tensor in[INPUTS], t;
        double loss, without[2];
        loop_create_siamese(&l);
        must(keel_strategy_create(&s, devices[d]));
        for (int fails = 0; fails < 2; fails++) {
            loop_fill(l.model[0], 0);
            keel_function *f = loop_function(&l, 0);
            for (int step = 0; step < 2; step++) {
                for (int i = 0; i < l.n_input; i++)
                    in[i] = loop_part(&l.rows[i], step * BATCH, BATCH);
                const double x = loop_number(&in[0], 7);
                if (fails && step == 1) {
                    must(keel_model_get_weight(l.model[0], "dense/kernel", &t));
                    loop_put(&in[0], 7, NAN);
                    assert_int_equal(keel_strategy_run(s, f, in, l.n_input), KEEL_ENUMERIC);
                    assert_non_null(strstr(keel_error(), "not finite"));
                    assert_int_equal(keel_function_scalar(f, "loss", &loss), KEEL_EARG);
                    loop_put(&in[0], 7, x);
                    keel_tensor after;
                    must(keel_model_get_weight(l.model[0], "dense/kernel", &after));
                    assert_memory_equal(t.data, after.data, 48 * sizeof(float));
                    keel_tensor_free(&after);
                    keel_tensor_free(&t);
                }
                must(keel_strategy_run(s, f, in, l.n_input));
            }
            must(keel_model_get_weight(l.model[0], "dense/kernel", &t));
            without[fails] = loop_number(&t, 5);
            keel_tensor_free(&t);
            keel_function_destroy(f);
        }
        assert_true(without[0] == without[1]);
        keel_strategy_destroy(s);
        loop_free(&l);
    }
}

static keel_status any_length(void *context, keel_trace *t)
{
    (void)context;
    const keel_traced x = loop_input(t, "x");
    return keel_trace_return(t, "sum",
                             loop_call(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INT("axis", 1)), x));
}

static void a_step_is_compiled_once_for_each_shape(void **unused)
{
    (void)unused;
    static const struct {
        int64_t rows, length, compiled;
    } runs[] = { { 4, 3, 1 }, { 2, 3, 1 }, { 4, 5, 2 }, { 4, 3, 2 },
                 { 6, 3, 3 }, { 4, 5, 3 }, { 4, 2, 4 }, { 5, 3, 4 } };
    static float x[64];
    keel_strategy *s;
    keel_function *f;
    const keel_data_field in = { "x", KEEL_FLOAT32, { 1, { KEEL_DIM_OPEN } } };
    for (int i = 0; i < 64; i++) x[i] = (float)i;
    must(keel_strategy_create(&s, "cpu:0-2"));
    must(keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS,
                                                            .step = any_length, .input = &in,
                                                            .n_input = 1, .programs = 3 }));
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const int64_t n = runs[i].rows * runs[i].length;
        const keel_tensor t = { KEEL_FLOAT32, { 2, { runs[i].rows, runs[i].length } }, x };
        must(keel_strategy_run(s, f, &t, 1));
        is_reduced(f, "sum", KEEL_ROWS_SUM, (double)(n * (n - 1) / 2));
        assert_int_equal(keel_function_compiled(f), runs[i].compiled);
    }
    const keel_tensor other = { KEEL_FLOAT32, { 1, { 4 } }, x };
    assert_int_equal(keel_strategy_run(s, f, &other, 1), KEEL_ESHAPE);
    assert_int_equal(keel_strategy_run(s, f, NULL, 0), KEEL_EARG);
    keel_function_destroy(f);
    keel_strategy_destroy(s);
}

static void each_failing_allocation_is_an_error_without_a_leak(void **unused)
{
    (void)unused;
    loop l = { .dtype = KEEL_FLOAT32, .step = { loop_compare } };
    keel_strategy *s;
    keel_tensor in[INPUTS];
    loop_create_siamese(&l);
    must(keel_strategy_create(&s, "cpu:0"));
    for (int i = 0; i < l.n_input; i++) in[i] = loop_part(&l.rows[i], 0, BATCH);
    const int64_t live = keel_memory_live();
    keel_status st = KEEL_ENOMEM;
    for (int64_t at = 0; st < 0; at++) {
        keel_function *f = NULL;
        keel_memory_fail_at(at);
        st = keel_function_create(
            &f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = loop_compare,
                                          .context = &l, .input = l.input, .n_input = l.n_input });
        if (st >= 0) st = keel_strategy_run(s, f, in, l.n_input);
        keel_memory_fail_at(-1);
        if (st < 0 && st != KEEL_ENOMEM) fail_msg("allocation %d: %s", (int)at, keel_error());
        if (st < 0 && f) must(keel_strategy_run(s, f, in, l.n_input)); /* it can go on */
        keel_function_destroy(f);
        assert_int_equal(keel_memory_live(), live);
        assert_true(at < 5000);
    }
    keel_strategy_destroy(s);
    loop_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_all_rows_on_unequal_and_empty_devices),
        cmocka_unit_test(steps_are_clipped_added_up_and_left_out_alike_on_any_devices),
        cmocka_unit_test(every_optimizer_moves_as_in_a_fit),
        cmocka_unit_test(an_optimizer_without_weighted_rows_does_not_move),
        cmocka_unit_test(who_decides_knows_the_loss_and_how_often_it_was_applied),
        cmocka_unit_test(steps_that_cannot_be_exact_are_refused_by_name),
        cmocka_unit_test(strategies_that_are_of_fits_are_refused),
        cmocka_unit_test(a_failed_step_leaves_no_trace),
        cmocka_unit_test(a_step_is_compiled_once_for_each_shape),
        cmocka_unit_test(each_failing_allocation_is_an_error_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
