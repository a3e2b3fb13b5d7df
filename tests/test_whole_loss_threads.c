/* Losses of all rows with so many rows that workers share what they compute: the bits are those of
 * one worker, for any number of them, and the numbers are those of plain C. */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "must.h"
#include "thread_processes.h"
#include "whole_steps.h"

enum { ROWS_MAX = 310, PIXELS = 6, DIMS = 4, WEIGHTS = PIXELS * DIMS, STEPS = 3, SHARDS = 16 };

/* ---- the losses ------------------------------------------------------------------------------ */

static keel_traced along(keel_trace *t, const char *name, int axis, keel_traced x)
{
    return op(t, name, KEEL_ARGS(KEEL_ARG_INTS("axis", axis), KEEL_ARG_BOOL("keepdims", true)), x);
}

static keel_traced turn(keel_trace *t, keel_traced x)
{
    return op(t, "ops.Transpose", KEEL_ARGS(KEEL_ARG_INTS("axes", 0, 2, 1)), x);
}

static keel_traced mean(keel_trace *t, keel_traced x)
{
    return op(t, "ops.Mean", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2)), x);
}

/* [rows, rows] the product of each row of "a" with each of "b" */
static keel_traced products(keel_trace *t)
{
    return both(t, "ops.Matmul", input(t, "a"), turn(t, input(t, "b")));
}

/* 1 where two rows have the same label */
static keel_traced same(keel_trace *t)
{
    const int64_t rows = rows_of(t, "label");
    const keel_traced down =
        op(t, "ops.Reshape", KEEL_ARGS(KEEL_ARG_INTS("newshape", -1, rows, 1)), input(t, "label"));
    return both(t, "ops.Equal", down, turn(t, down));
}

/* The mean over i of -log softmax(products)[i, i]. */
static keel_status info(void *unused, keel_trace *t)
{
    const int64_t rows = rows_of(t, "a");
    (void)unused;
    const keel_traced own =
        op(t, "ops.OneHot", KEEL_ARGS(KEEL_ARG_INT("num_classes", rows)), input(t, "label"));
    const keel_traced logs = op(t, "ops.LogSoftmax", NULL, times(t, products(t), 2));
    return give_back(t, times(t, mean(t, both(t, "ops.Multiply", own, logs)), -(double)rows));
}

/* The same by both sides: of images and of texts. */
static keel_status both_sides(void *unused, keel_trace *t)
{
    (void)unused;
    const keel_traced z = products(t);
    const keel_traced right = op(t, "ops.LogSoftmax", NULL, z);
    const keel_traced left = op(t, "ops.LogSoftmax", NULL, turn(t, z));
    const keel_traced pairs = both(t, "ops.Multiply", same(t), both(t, "ops.Add", left, right));
    return give_back(t, times(t, mean(t, pairs), -1));
}

/* The softplus of products, which are large where labels are equal. */
static keel_status sigmoids(void *unused, keel_trace *t)
{
    (void)unused;
    const keel_traced sign = times(t, same(t), -2);
    const keel_traced z = both(t, "ops.Multiply", both(t, "ops.Add", sign, same(t)), products(t));
    return give_back(t, mean(t, op(t, "ops.Softplus", NULL, z)));
}

/* The squared distance of each row of "a" and each of "b": what is largest in a line and in a
 * column, and all of them less a margin. */
static keel_status distances(void *unused, keel_trace *t)
{
    (void)unused;
    const keel_traced a = input(t, "a"), b = input(t, "b");
    const keel_traced aa = along(t, "ops.Sum", 2, op(t, "ops.Square", NULL, a));
    const keel_traced bb = turn(t, along(t, "ops.Sum", 2, op(t, "ops.Square", NULL, b)));
    const keel_traced far =
        both(t, "ops.Subtract", both(t, "ops.Add", aa, bb), times(t, products(t), 2));
    const keel_traced line = along(t, "ops.Max", 2, far), column = along(t, "ops.Max", 1, far);
    const keel_traced rest = op(t, "ops.Relu", NULL, both(t, "ops.Subtract", far, column));
    const keel_traced less = op(t, "ops.Relu", NULL, both(t, "ops.Subtract", line, far));
    const keel_traced all = both(t, "ops.Add", both(t, "ops.Add", rest, less), column);
    return give_back(t, times(t, mean(t, all), 1.0 / 64));
}

/* The correlations of features over all rows, which are to be those of the unit matrix. */
static keel_status correlations(void *unused, keel_trace *t)
{
    const int64_t rows = rows_of(t, "a");
    (void)unused;
    const keel_traced a = input(t, "a"), b = input(t, "b");
    const keel_traced near = both(t, "ops.Subtract", a, along(t, "ops.Mean", 1, a));
    const keel_traced size =
        op(t, "ops.Sqrt", NULL, along(t, "ops.Mean", 1, op(t, "ops.Square", NULL, near)));
    const keel_traced of = both(t, "ops.Matmul", turn(t, both(t, "ops.Divide", near, size)), b);
    return give_back(t, mean(t, op(t, "ops.Square", NULL, times(t, of, 1.0 / (double)rows))));
}

/* Several matrices of products, of some of which a part is dropped. */
static keel_status heads(void *unused, keel_trace *t)
{
    const int64_t rows = rows_of(t, "a");
    (void)unused;
    keel_traced x[2] = { input(t, "a"), input(t, "b") };
    for (int i = 0; i < 2; i++) {
        x[i] =
            op(t, "ops.Reshape", KEEL_ARGS(KEEL_ARG_INTS("newshape", -1, rows, 2, DIMS / 2)), x[i]);
        x[i] = op(t, "ops.Transpose",
                  KEEL_ARGS(KEEL_ARG_INTS("axes", 0, 2, 1 + 2 * !i, 3 - 2 * !i)), x[i]);
    }
    keel_traced z = op(t, "ops.Softmax", NULL, both(t, "ops.Matmul", x[1], x[0]));
    z = op(t, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.25)), z);
    z = op(t, "ops.Mean", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2, 3)), op(t, "ops.Exp", NULL, z));
    return give_back(t, z);
}

/* The product of a matrix with itself, each line of which needs all others. */
static keel_status chained(void *unused, keel_trace *t)
{
    (void)unused;
    const keel_traced z = op(t, "ops.Softmax", NULL, products(t));
    const keel_traced twice = both(t, "ops.Matmul", z, z);
    return give_back(t, times(t, mean(t, op(t, "ops.Square", NULL, twice)), 1000));
}

/* Each row beside those of both sides, as in SimCLR. */
static keel_status beside(void *unused, keel_trace *t)
{
    (void)unused;
    const keel_traced a = input(t, "a");
    const keel_traced own = both(t, "ops.Matmul", a, turn(t, a));
    keel_traced z = -1;
    keel_trace_call(t, "ops.Concatenate", KEEL_ARGS(KEEL_ARG_INT("axis", 2)), NULL,
                    (keel_traced[]){ products(t), op(t, "ops.Negative", NULL, own) }, 2, &z);
    z = op(t, "ops.Cumsum", KEEL_ARGS(KEEL_ARG_INT("axis", 2)), op(t, "ops.Softmax", NULL, z));
    return give_back(t, mean(t, op(t, "ops.Square", NULL, z)));
}

/* Few rows, each of which is there many times: some devices have none. */
static keel_status of_few(void *unused, keel_trace *t)
{
    (void)unused;
    keel_traced x[2] = { input(t, "a"), input(t, "b") };
    for (int i = 0; i < 2; i++)
        x[i] = op(t, "ops.Repeat", KEEL_ARGS(KEEL_ARG_INT("repeats", 90), KEEL_ARG_INT("axis", 1)),
                  x[i]);
    const keel_traced z = op(t, "ops.LogSoftmax", NULL, both(t, "ops.Matmul", x[0], turn(t, x[1])));
    return give_back(t, times(t, mean(t, op(t, "ops.Square", NULL, z)), 1.0 / 1024));
}

/* A logarithm of a sum that rows make negative, in each line: no number. */
static keel_status no_number(void *unused, keel_trace *t)
{
    (void)unused;
    const keel_traced z = op(t, "ops.Square", NULL, products(t));
    return give_back(t, mean(t, op(t, "ops.Log", NULL, times(t, z, -1))));
}

/* A label of no class. */
static keel_status no_class(void *unused, keel_trace *t)
{
    keel_scalar loss = -1;
    (void)unused;
    keel_trace_loss(t, &(keel_named){ "sparse_categorical_crossentropy", NULL },
                    times(t, input(t, "label"), 2), op(t, "ops.Softmax", NULL, products(t)),
                    KEEL_UNWEIGHTED, &loss);
    return keel_trace_return_scalar(t, "loss", loss);
}

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct scene {
    keel_model *model;
    keel_step step;
} scene;

static keel_status train(void *context, keel_trace *t)
{
    const scene *s = context;
    keel_traced value[] = { input(t, "x"), input(t, "y"), input(t, "label") };
    keel_scalar loss = -1;
    keel_gradients g = -1;
    for (int i = 0; i < 2; i++) keel_trace_model(t, s->model, true, &value[i], 1, &value[i]);
    keel_trace_whole_loss(t,
                          &(keel_whole_loss){ .name = (const char *const[]){ "a", "b", "label" },
                                              .value = value,
                                              .n = 3,
                                              .step = s->step },
                          &loss);
    keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ s->model }, 1, &g);
    keel_trace_apply(t, g,
                     &(keel_apply){ { "sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.25)) } });
    return keel_trace_return_scalar(t, "loss", loss);
}

typedef struct rows {
    double x[ROWS_MAX * PIXELS], y[ROWS_MAX * PIXELS];
    int64_t label[ROWS_MAX];
} rows;

/* What is left of some steps. */
typedef struct left {
    keel_status status;
    char text[512];
    double loss[STEPS], weight[WEIGHTS];
} left;

static void make_rows(keel_dtype dtype, rows *r)
{
    for (int i = 0; i < ROWS_MAX * PIXELS; i++) {
        const double x = (i * 37 % 61) / 32.0 - 1;
        put(dtype, r->x, i, x);
        put(dtype, r->y, i, x + (i * 53 % 59) / 64.0 - 0.5);
    }
    for (int i = 0; i < ROWS_MAX; i++) r->label[i] = i;
}

static scene begin(keel_step step, keel_dtype dtype)
{
    scene s = { .step = step };
    keel_symbol x;
    must(keel_model_create(&s.model, "tower", dtype, 1));
    must(keel_model_input(s.model, KEEL_DIMS(PIXELS), NULL, &x));
    x = must_call(s.model, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", DIMS), KEEL_ARG_BOOL("use_bias", false)), x);
    must(keel_model_outputs(s.model, &x, 1));
    return s;
}

static keel_status create(keel_function **f, keel_dtype dtype, scene *s)
{
    const keel_data_field inputs[] = { { "x", dtype, { 1, { PIXELS } } },
                                       { "y", dtype, { 1, { PIXELS } } },
                                       { "label", KEEL_INT64, { 0 } } };
    return keel_function_create(
        f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = train, .dtype = dtype,
                                     .context = s, .input = inputs, .n_input = 3, .seed = 3 });
}

static keel_status run_step(keel_strategy *s, keel_function *f, keel_dtype dtype, rows *r,
                            int64_t n)
{
    const keel_tensor in[] = { { dtype, { 2, { n, PIXELS } }, r->x },
                               { dtype, { 2, { n, PIXELS } }, r->y },
                               { KEEL_INT64, { 1, { n } }, r->label } };
    return keel_strategy_run(s, f, in, 3);
}

static void keep_weights(const scene *s, double to[WEIGHTS])
{
    keel_tensor t;
    must(keel_model_get_weight(s->model, keel_model_weight_name(s->model, 0), &t));
    for (int i = 0; i < WEIGHTS; i++) to[i] = number(t.dtype, t.data, i);
    keel_tensor_free(&t);
}

static void run(keel_step step, keel_dtype dtype, keel_strategy *s, int64_t n, left *out)
{
    scene sc = begin(step, dtype);
    keel_function *f = NULL;
    rows *r = keel_calloc(1, sizeof *r);
    *out = (left){ 0 };
    make_rows(dtype, r);
    out->status = create(&f, dtype, &sc);
    for (int i = 0; i < STEPS && out->status >= 0; i++) {
        out->status = run_step(s, f, dtype, r, n - i % 2);
        if (out->status >= 0) must(keel_function_scalar(f, "loss", &out->loss[i]));
    }
    if (out->status < 0) snprintf(out->text, sizeof out->text, "%s", keel_error());
    keep_weights(&sc, out->weight);
    keel_function_destroy(f);
    keel_model_destroy(sc.model);
    keel_free(r);
}

/* On so many devices, which so many threads run. */
static void run_on(keel_step step, keel_dtype dtype, int lanes, int workers, int64_t n, left *out)
{
    static const keel_process_group alone;
    keel_strategy *s;
    must(open_lanes(&s, &alone, lanes, workers));
    must(keel_strategy_reproducible(s, SHARDS));
    run(step, dtype, s, n, out);
    keel_strategy_destroy(s);
}

/* within 0: to the bit */
static void compare(const char *name, const char *where, const left *is, const left *wants,
                    double within)
{
    if (is->status < 0) fail_msg("%s, %s: %s", name, where, is->text);
    if (wants->status < 0) fail_msg("%s: %s", name, wants->text);
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(is->loss[i] - wants->loss[i]) <= within))
            fail_msg("%s, %s, step %d: loss %.17g, not %.17g", name, where, i, is->loss[i],
                     wants->loss[i]);
    for (int i = 0; i < WEIGHTS; i++)
        if (!(fabs(is->weight[i] - wants->weight[i]) <= within))
            fail_msg("%s, %s: weight %d is %.17g, not %.17g", name, where, i, is->weight[i],
                     wants->weight[i]);
}

/* ---- what they compute ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    keel_step step;
    int64_t rows; /* so many that calls are cut; 8 and 12 do not divide them */
    double within;
} cases[] = {
    { "one side", info, 203, 1e-5 },
    { "both sides", both_sides, 257, 1e-4 },
    { "sigmoids", sigmoids, 211, 1e-5 },
    { "distances", distances, 301, 1e-4 },
    { "correlations", correlations, 309, 1e-5 },
    { "heads", heads, 199, 1e-5 },
    { "chained", chained, 203, 1e-5 },
    { "of few rows", of_few, 3, 1e-4 },
    { "beside", beside, 203, 1e-5 },
};
enum { CASES = sizeof cases / sizeof *cases };

static void any_devices_have_the_bits_of_one(void **unused)
{
    static const int of[][2] = { { 2, 1 }, { 2, 2 }, { 3, 3 }, { 5, 2 }, { 4, 4 }, { 5, 5 } };
    (void)unused;
    for (int k = 0; k < CASES; k++)
        for (int f64 = 0; f64 < 2; f64++) {
            const keel_dtype dtype = f64 ? KEEL_FLOAT64 : KEEL_FLOAT32;
            left wants, is;
            run_on(cases[k].step, dtype, 1, 1, cases[k].rows, &wants);
            for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
                char where[64];
                snprintf(where, sizeof where, "%d devices of %d threads", of[i][0], of[i][1]);
                run_on(cases[k].step, dtype, of[i][0], of[i][1], cases[k].rows, &is);
                compare(cases[k].name, where, &is, &wants, 0);
            }
        }
}

/* Kernels of float32 are cut as the references of float64 are. */
static void float32_is_near_float64(void **unused)
{
    (void)unused;
    for (int k = 0; k < CASES; k++) {
        left f32, f64;
        run_on(cases[k].step, KEEL_FLOAT32, 2, 2, cases[k].rows, &f32);
        run_on(cases[k].step, KEEL_FLOAT64, 2, 2, cases[k].rows, &f64);
        compare(cases[k].name, "float32", &f32, &f64, cases[k].within);
    }
}

/* A step of `info` of n rows; kernel is moved. Returns the loss. */
static double step_in_c(const rows *r, int n, double kernel[WEIGHTS])
{
    static double v[2][ROWS_MAX][DIMS], d[2][ROWS_MAX][DIMS], z[ROWS_MAX];
    const double *of[2] = { r->x, r->y };
    double loss = 0;
    memset(v, 0, sizeof v);
    memset(d, 0, sizeof d);
    for (int i = 0; i < 2 * n * PIXELS; i++)
        for (int k = 0; k < DIMS; k++)
            v[i % 2][i / 2 / PIXELS][k] += of[i % 2][i / 2] * kernel[i / 2 % PIXELS * DIMS + k];
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < n; j++) {
            z[j] = 0;
            for (int k = 0; k < DIMS; k++) z[j] += 2 * v[0][i][k] * v[1][j][k];
            sum += exp(z[j]);
        }
        loss += (log(sum) - z[i]) / n;
        for (int j = 0; j < n; j++)
            for (int k = 0; k < DIMS; k++) {
                const double dz = 2 * (exp(z[j]) / sum - (i == j)) / n;
                d[0][i][k] += dz * v[1][j][k];
                d[1][j][k] += dz * v[0][i][k];
            }
    }
    for (int i = 0; i < 2 * n * PIXELS; i++)
        for (int k = 0; k < DIMS; k++)
            kernel[i / 2 % PIXELS * DIMS + k] -=
                0.25 * of[i % 2][i / 2] * d[i % 2][i / 2 / PIXELS][k];
    return loss;
}

static void numbers_are_those_of_plain_c(void **unused)
{
    scene s = begin(info, KEEL_FLOAT64);
    left wants = { 0 }, is;
    rows *r = keel_calloc(1, sizeof *r);
    (void)unused;
    keep_weights(&s, wants.weight);
    make_rows(KEEL_FLOAT64, r);
    for (int i = 0; i < STEPS; i++) wants.loss[i] = step_in_c(r, 203 - i % 2, wants.weight);
    run_on(info, KEEL_FLOAT64, 2, 2, 203, &is);
    compare("one side", "two threads", &is, &wants, 1e-9);
    keel_model_destroy(s.model);
    keel_free(r);
}

typedef struct process {
    int which;
    keel_process_group group;
    int lanes, workers;
    left out;
} process;

static void *live(void *context)
{
    process *p = context;
    keel_strategy *s = NULL;
    p->group.timeout = PATIENT;
    p->out.status = open_lanes(&s, &p->group, p->lanes, p->workers);
    if (p->out.status >= 0) p->out.status = keel_strategy_reproducible(s, SHARDS);
    if (p->out.status >= 0)
        run(cases[p->which].step, KEEL_FLOAT32, s, cases[p->which].rows, &p->out);
    keel_strategy_destroy(s);
    return NULL;
}

static void processes_have_the_bits_of_one(void **unused)
{
    (void)unused;
    for (int k = 0; k < CASES; k++) {
        left wants;
        run_on(cases[k].step, KEEL_FLOAT32, 1, 1, cases[k].rows, &wants);
        for (int n = 2; n <= 3; n++) {
            thread_group group;
            process p[THREADS_MAX] = { { 0 } };
            thread_group_begin(&group, n);
            for (int i = 0; i < n; i++)
                p[i] = (process){ k, thread_group_of(&group, i), 1 + i, 1 + i % 2, { 0 } };
            live_together(live, p, sizeof *p, n);
            for (int i = 0; i < n; i++) compare(cases[k].name, "processes", &p[i].out, &wants, 0);
            thread_group_end(&group);
        }
    }
}

/* ---- what fails ------------------------------------------------------------------------------ */

static void what_fails_in_a_part_is_the_steps_failure(void **unused)
{
    static const struct {
        keel_step step;
        keel_status status;
        const char *text;
    } wrong[] = {
        { no_number, KEEL_ENUMERIC, "the loss of all rows is not finite" },
        { no_class, KEEL_EDATA, "is not in 0..202" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int workers = 1; workers <= 3; workers++) {
            const scene s = begin(wrong[i].step, KEEL_FLOAT32);
            double before[WEIGHTS];
            left is;
            keep_weights(&s, before);
            keel_model_destroy(s.model);
            run_on(wrong[i].step, KEEL_FLOAT32, workers, workers, 203, &is);
            if (is.status != wrong[i].status || !strstr(is.text, wrong[i].text))
                fail_msg("case %d: %s '%s'", (int)i, keel_status_name(is.status), is.text);
            assert_memory_equal(is.weight, before, sizeof before);
        }
}

static void each_failing_allocation_is_an_error_without_a_leak(void **unused)
{
    static const keel_process_group alone;
    scene sc = begin(both_sides, KEEL_FLOAT32);
    keel_strategy *s;
    rows *r = keel_calloc(1, sizeof *r);
    (void)unused;
    make_rows(KEEL_FLOAT32, r);
    must(open_lanes(&s, &alone, 2, 2));
    const int64_t live_before = keel_memory_live();
    keel_status st = KEEL_ENOMEM;
    for (int64_t at = 0; st < 0; at++) {
        keel_function *f = NULL;
        keel_memory_fail_at(at);
        st = create(&f, KEEL_FLOAT32, &sc);
        if (st >= 0) st = run_step(s, f, KEEL_FLOAT32, r, 203);
        keel_memory_fail_at(-1);
        if (st < 0 && st != KEEL_ENOMEM) fail_msg("allocation %d: %s", (int)at, keel_error());
        if (st < 0 && f && at % 16 == 0) must(run_step(s, f, KEEL_FLOAT32, r, 203));
        keel_function_destroy(f);
        assert_int_equal(keel_memory_live(), live_before);
        assert_true(at < 5000);
    }
    keel_strategy_destroy(s);
    keel_model_destroy(sc.model);
    keel_free(r);
}

/* What a step takes was taken before it. */
static void a_step_allocates_nothing(void **unused)
{
    static const keel_process_group alone;
    scene sc = begin(distances, KEEL_FLOAT32);
    keel_strategy *s;
    keel_function *f;
    rows *r = keel_calloc(1, sizeof *r);
    (void)unused;
    make_rows(KEEL_FLOAT32, r);
    must(open_lanes(&s, &alone, 2, 2));
    must(create(&f, KEEL_FLOAT32, &sc));
    for (int i = 0; i < 3; i++) {
        const int64_t calls = keel_memory_calls();
        must(run_step(s, f, KEEL_FLOAT32, r, 301));
        if (i > 0) assert_int_equal(keel_memory_calls(), calls);
    }
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    keel_model_destroy(sc.model);
    keel_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_devices_have_the_bits_of_one),
        cmocka_unit_test(float32_is_near_float64),
        cmocka_unit_test(numbers_are_those_of_plain_c),
        cmocka_unit_test(processes_have_the_bits_of_one),
        cmocka_unit_test(what_fails_in_a_part_is_the_steps_failure),
        cmocka_unit_test(each_failing_allocation_is_an_error_without_a_leak),
        cmocka_unit_test(a_step_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
