/* Losses of all rows of a step together, computed by a step of the caller's: each row meets all
 * others on any devices and in any processes, and losses and weights are those of one device. */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "must.h"
#include "standin.h"
#include "thread_processes.h"
#include "whole_steps.h"

enum { ROWS_MAX = 16, PIXELS = 6, DIMS = 3, STEPS = 4, WEIGHTS_MAX = 512, SHARDS = 16 };

/* ---- the losses ------------------------------------------------------------------------------ */

/* [rows, rows] 4 times the product of each row of "a" with each of "b". */
static keel_traced products(keel_trace *t)
{
    const keel_traced turned =
        op(t, "ops.Transpose", KEEL_ARGS(KEEL_ARG_INTS("axes", 0, 2, 1)), input(t, "b"));
    return times(t, both(t, "ops.Matmul", input(t, "a"), turned), 4);
}

/* InfoNCE: row i of "a" is to be nearer to row i of "b" than to any other: the mean over i of
 * -log softmax(products)[i, i]. "label" is the number of a row. */
static keel_status info(void *traced, keel_trace *t)
{
    const int64_t rows = rows_of(t, "a");
    if (traced) ++*(int *)traced;
    const keel_traced same =
        op(t, "ops.OneHot", KEEL_ARGS(KEEL_ARG_INT("num_classes", rows)), input(t, "label"));
    const keel_traced all =
        op(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2)),
           both(t, "ops.Multiply", same, op(t, "ops.LogSoftmax", NULL, products(t))));
    return give_back(t, times(t, all, -1.0 / (double)rows));
}

/* The same by a loss of Keras, whose elements are the rows. */
static keel_status info_of_keras(void *traced, keel_trace *t)
{
    keel_scalar loss = -1;
    if (traced) ++*(int *)traced;
    keel_trace_loss(t,
                    &(keel_named){ "sparse_categorical_crossentropy",
                                   KEEL_ARGS(KEEL_ARG_BOOL("from_logits", true)) },
                    input(t, "label"), products(t), KEEL_UNWEIGHTED, &loss);
    return keel_trace_return_scalar(t, "loss", loss);
}

/* The mean of all products, of which some are dropped, other ones in each step. */
static keel_status dropped(void *unused, keel_trace *t)
{
    (void)unused;
    const keel_traced some = op(t, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.5)), products(t));
    return give_back(t, op(t, "ops.Mean", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2)), some));
}

/* How fast the sum of the squared products changes with "a": its mean square. And a scalar beside,
 * which is not the loss. */
static keel_status slope(void *unused, keel_trace *t)
{
    keel_traced by = -1;
    keel_scalar beside = -1;
    (void)unused;
    const keel_traced squares = op(t, "ops.Square", NULL, products(t));
    const keel_traced sum = op(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2)), squares);
    keel_trace_mean(t, input(t, "b"), KEEL_UNWEIGHTED, &beside);
    keel_trace_gradient_of(t, times(t, sum, 0x1p-12), input(t, "a"), &by);
    return give_back(t, op(t, "ops.Mean", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2)),
                           op(t, "ops.Square", NULL, by)));
}

/* The mean square of the products of two numbers of a row, over all rows. */
static keel_status spread(void *unused, keel_trace *t)
{
    (void)unused;
    const keel_traced a = input(t, "a");
    const keel_traced turned = op(t, "ops.Transpose", KEEL_ARGS(KEEL_ARG_INTS("axes", 0, 2, 1)), a);
    const keel_traced common = both(t, "ops.Matmul", turned, a);
    const keel_traced pairs =
        op(t, "ops.Square", NULL, times(t, common, 1.0 / (double)rows_of(t, "a")));
    return give_back(t, op(t, "ops.Mean", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2)), pairs));
}

/* The mean over all pairs of rows of their product, where their labels are the same. One side of
 * the comparison is turned, or given its shape at once; apart: their difference is compared. */
static keel_status of_labels(keel_trace *t, bool turned, bool apart)
{
    const int64_t rows = rows_of(t, "label");
    const keel_traced down =
        op(t, "ops.Reshape", KEEL_ARGS(KEEL_ARG_INTS("newshape", -1, rows, 1)), input(t, "label"));
    const keel_traced across =
        turned ? op(t, "ops.Transpose", KEEL_ARGS(KEEL_ARG_INTS("axes", 0, 2, 1)), down)
               : op(t, "ops.ExpandDims", KEEL_ARGS(KEEL_ARG_INTS("axis", 1)), input(t, "label"));
    const keel_traced same = apart ? both(t, "ops.Equal", both(t, "ops.Subtract", down, across),
                                          both(t, "ops.Subtract", down, down))
                                   : both(t, "ops.Equal", down, across);
    const keel_traced pairs = both(t, "ops.Multiply", same, products(t));
    return give_back(t, op(t, "ops.Mean", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2)), pairs));
}

static keel_status labels_turned(void *unused, keel_trace *t)
{
    (void)unused;
    return of_labels(t, true, false);
}

static keel_status labels_shaped(void *unused, keel_trace *t)
{
    (void)unused;
    return of_labels(t, false, false);
}

static keel_status labels_subtracted(void *unused, keel_trace *t)
{
    (void)unused;
    return of_labels(t, true, true);
}

/* ---- models, and steps that train them ------------------------------------------------------- */

static keel_model *begin(keel_dtype dtype, keel_symbol *x)
{
    keel_model *m;
    must(keel_model_create(&m, "tower", dtype, 1));
    must(keel_model_input(m, KEEL_DIMS(PIXELS), NULL, x));
    return m;
}

static keel_model *plain(keel_dtype dtype)
{
    keel_symbol x;
    keel_model *m = begin(dtype, &x);
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", DIMS), KEEL_ARG_BOOL("use_bias", false)), x);
    must(keel_model_outputs(m, &x, 1));
    return m;
}

static keel_model *encoder(keel_dtype dtype)
{
    keel_symbol x;
    keel_model *m = begin(dtype, &x);
    x = must_call(m, "Reshape", KEEL_ARGS(KEEL_ARG_INTS("target_shape", 3, 2)), x);
    x = must_call(m, "Conv1D",
                  KEEL_ARGS(KEEL_ARG_INT("filters", 4), KEEL_ARG_INTS("kernel_size", 2)), x);
    x = must_call(m, "BatchNormalization", NULL, x);
    x = must_call(m, "ReLU", NULL, x);
    x = must_call(m, "Flatten", NULL, x);
    x = must_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.25)), x);
    x = must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", DIMS)), x);
    must(keel_model_outputs(m, &x, 1));
    return m;
}

/* Rows of any number in one row, whose vectors become vectors of length 1. */
static keel_model *lengths(keel_dtype dtype)
{
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, "lengths", dtype, 1));
    must(keel_model_input(m, KEEL_DIMS(KEEL_DIM_OPEN, DIMS), NULL, &x));
    x = must_call(m, "UnitNormalization", NULL, x);
    must(keel_model_outputs(m, &x, 1));
    return m;
}

typedef struct scene {
    keel_model *model[2]; /* the second may be missing */
    int traced;           /* how often the step of a loss was */
} scene;

static keel_scalar meet(keel_trace *t, keel_step step, void *context, keel_traced a, keel_traced b)
{
    keel_scalar loss = -1;
    const keel_traced value[] = { a, b, input(t, "label") };
    static const char *const name[] = { "a", "b", "label" };
    keel_trace_whole_loss(t, &(keel_whole_loss){ name, value, b < 0 ? 1 : 3, step, context },
                          &loss);
    return loss;
}

static void learn(keel_trace *t, const keel_term *terms, int n, keel_model *m)
{
    keel_gradients g = -1;
    keel_trace_gradients(t, terms, n, &(keel_watched){ m }, 1, &g);
    keel_trace_apply(t, g,
                     &(keel_apply){ { "sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.25)) } });
}

static keel_traced call(keel_trace *t, keel_model *m, const char *name)
{
    keel_traced x = input(t, name);
    keel_trace_model(t, m, true, &x, 1, &x);
    return x;
}

/* One model makes both values. */
static keel_status towers_by(scene *s, keel_trace *t, keel_step step)
{
    const keel_traced a = call(t, s->model[0], "x"), b = call(t, s->model[0], "y");
    const keel_scalar loss = meet(t, step, &s->traced, a, b);
    learn(t, &(keel_term){ loss, 1 }, 1, s->model[0]);
    return keel_trace_return_scalar(t, "loss", loss);
}

static keel_status two_towers(void *context, keel_trace *t)
{
    return towers_by(context, t, info);
}

static keel_status two_towers_of_keras(void *context, keel_trace *t)
{
    return towers_by(context, t, info_of_keras);
}

static keel_status two_towers_by_slopes(void *context, keel_trace *t)
{
    return towers_by(context, t, slope);
}

static keel_status two_towers_dropped(void *context, keel_trace *t)
{
    return towers_by(context, t, dropped);
}

/* The same values in each step. */
static keel_status values_dropped(void *unused, keel_trace *t)
{
    const keel_traced x = input(t, "fixed");
    (void)unused;
    return keel_trace_return_scalar(t, "loss", meet(t, dropped, NULL, x, x));
}

/* The mean square of the sum of all rows, each of length 1, by a model without weights. */
static keel_status of_lengths(void *context, keel_trace *t)
{
    keel_traced a = input(t, "a");
    keel_trace_model(t, context, true, &a, 1, &a);
    a = op(t, "ops.Square", NULL, op(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INTS("axis", 1)), a));
    return give_back(t, op(t, "ops.Mean", KEEL_ARGS(KEEL_ARG_INTS("axis", 1)), a));
}

static keel_status with_a_model(void *context, keel_trace *t)
{
    const scene *s = context;
    const keel_traced a = call(t, s->model[0], "x");
    const keel_scalar loss = meet(t, of_lengths, s->model[1], a, -1);
    learn(t, &(keel_term){ loss, 1 }, 1, s->model[0]);
    return keel_trace_return_scalar(t, "loss", loss);
}

/* Each value is of a model of its own, and one optimizer moves both. */
static keel_status two_models(void *context, keel_trace *t)
{
    const scene *s = context;
    const keel_traced a = call(t, s->model[0], "x"), b = call(t, s->model[1], "y");
    const keel_scalar loss = meet(t, info, NULL, a, b);
    keel_gradients g = -1;
    keel_trace_gradients(t, &(keel_term){ loss, 0.5 }, 1,
                         (keel_watched[]){ { s->model[0] }, { s->model[1] } }, 2, &g);
    keel_trace_apply(t, g, &(keel_apply){ { "sgd" } });
    return keel_trace_return_scalar(t, "loss", loss);
}

/* The same, where each model has an optimizer of its own: one loss is in two gradients. */
static keel_status two_optimizers(void *context, keel_trace *t)
{
    const scene *s = context;
    const keel_traced a = call(t, s->model[0], "x"), b = call(t, s->model[1], "y");
    const keel_scalar loss = meet(t, info, NULL, a, b);
    for (int i = 0; i < 2; i++) {
        keel_gradients g = -1;
        keel_trace_gradients(t, &(keel_term){ loss, 0.5 }, 1, &(keel_watched){ s->model[i] }, 1,
                             &g);
        keel_trace_apply(t, g, &(keel_apply){ { "sgd" } });
    }
    return keel_trace_return_scalar(t, "loss", loss);
}

/* Nothing is trained. */
static keel_status only_look(void *context, keel_trace *t)
{
    const scene *s = context;
    const keel_traced a = call(t, s->model[0], "x"), b = call(t, s->model[0], "y");
    return keel_trace_return_scalar(t, "loss", meet(t, info, NULL, a, b));
}

/* One model by a loss of all rows; the other by two of them, and by the mean of its squares. */
static keel_status several(void *context, keel_trace *t)
{
    const scene *s = context;
    const keel_traced a = call(t, s->model[0], "x"), b = input(t, "fixed");
    const keel_traced c = call(t, s->model[1], "y");
    keel_scalar mean = -1;
    const keel_scalar first = meet(t, info, NULL, a, b), second = meet(t, info, NULL, b, c);
    const keel_scalar third = meet(t, spread, NULL, c, -1);
    keel_trace_mean(t, op(t, "ops.Square", NULL, c), KEEL_UNWEIGHTED, &mean);
    learn(t, &(keel_term){ first, 1 }, 1, s->model[0]);
    learn(t, (keel_term[]){ { second, 0.5 }, { mean, 0.125 }, { third, 0.0625 } }, 3, s->model[1]);
    keel_trace_return_scalar(t, "other", second);
    return keel_trace_return_scalar(t, "loss", first);
}

/* The parts of `several` by themselves. */
static keel_status several_first(void *context, keel_trace *t)
{
    const scene *s = context;
    const keel_traced a = call(t, s->model[0], "x"), b = input(t, "fixed");
    const keel_scalar first = meet(t, info, NULL, a, b);
    learn(t, &(keel_term){ first, 1 }, 1, s->model[0]);
    return keel_trace_return_scalar(t, "loss", first);
}

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct work {
    const char *name;
    keel_step step;
    keel_model *(*build[2])(keel_dtype dtype);
    keel_dtype dtype;
} work;

/* What is left of some steps. */
typedef struct left {
    keel_status status;
    char text[512];
    double loss[STEPS], other[STEPS], weight[WEIGHTS_MAX];
    int n_weight, traced;
} left;

typedef struct rows {
    char x[ROWS_MAX * PIXELS * 8], y[ROWS_MAX * PIXELS * 8], fixed[ROWS_MAX * DIMS * 8];
    int64_t label[ROWS_MAX];
} rows;

static void make_rows(keel_dtype dtype, rows *r)
{
    for (int i = 0; i < ROWS_MAX * PIXELS; i++) {
        const double x = (i * 37 % 16) / 8.0 - 1;
        put(dtype, r->x, i, x);
        put(dtype, r->y, i, x + (i * 53 % 16) / 16.0 - 0.5);
    }
    for (int i = 0; i < ROWS_MAX * DIMS; i++) put(dtype, r->fixed, i, (i * 29 % 8) / 8.0 - 0.5);
    for (int i = 0; i < ROWS_MAX; i++) r->label[i] = i;
}

static keel_status run_step(keel_strategy *s, keel_function *f, keel_dtype dtype, rows *r,
                            int64_t n)
{
    const keel_tensor in[] = { { dtype, { 2, { n, PIXELS } }, r->x },
                               { dtype, { 2, { n, PIXELS } }, r->y },
                               { dtype, { 2, { n, DIMS } }, r->fixed },
                               { KEEL_INT64, { 1, { n } }, r->label } };
    return keel_strategy_run(s, f, in, 4);
}

static keel_status create(keel_function **f, keel_step step, keel_dtype dtype, void *context)
{
    const keel_data_field inputs[] = { { "x", dtype, { 1, { PIXELS } } },
                                       { "y", dtype, { 1, { PIXELS } } },
                                       { "fixed", dtype, { 1, { DIMS } } },
                                       { "label", KEEL_INT64, { 0 } } };
    return keel_function_create(f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = step,
                                                             .dtype = dtype, .context = context,
                                                             .input = inputs, .n_input = 4,
                                                             .seed = 3 });
}

static void keep_weights(const scene *sc, left *out)
{
    for (int m = 0; m < 2 && sc->model[m]; m++)
        for (int w = 0; w < keel_model_weight_count(sc->model[m]); w++) {
            keel_tensor t;
            must(keel_model_get_weight(sc->model[m], keel_model_weight_name(sc->model[m], w), &t));
            int64_t n = 1;
            for (int d = 0; d < t.shape.rank; d++) n *= t.shape.dim[d];
            assert_true(out->n_weight + n <= WEIGHTS_MAX);
            for (int64_t i = 0; i < n; i++)
                out->weight[out->n_weight++] = number(t.dtype, t.data, i);
            keel_tensor_free(&t);
        }
}

/* Some steps of so many rows, and a shorter one. */
static void run(const work *w, keel_strategy *s, int64_t n, left *out)
{
    scene sc = { 0 };
    rows r;
    keel_function *f = NULL;
    *out = (left){ 0 };
    make_rows(w->dtype, &r);
    for (int m = 0; m < 2 && w->build[m]; m++) sc.model[m] = w->build[m](w->dtype);
    out->status = create(&f, w->step, w->dtype, &sc);
    for (int i = 0; i < STEPS && out->status >= 0; i++) {
        out->status = run_step(s, f, w->dtype, &r, i == STEPS - 1 ? n - 2 : n);
        if (out->status < 0) break;
        must(keel_function_scalar(f, "loss", &out->loss[i]));
        if (w->step == several) must(keel_function_scalar(f, "other", &out->other[i]));
    }
    if (out->status < 0) snprintf(out->text, sizeof out->text, "%s", keel_error());
    keep_weights(&sc, out);
    out->traced = sc.traced;
    keel_function_destroy(f);
    for (int m = 0; m < 2; m++) keel_model_destroy(sc.model[m]);
}

static void run_on(const work *w, const char *devices, int shards, int64_t n, left *out)
{
    keel_strategy *s;
    must(keel_strategy_create(&s, devices));
    if (shards) must(keel_strategy_reproducible(s, shards));
    run(w, s, n, out);
    keel_strategy_destroy(s);
}

/* within 0: to the bit */
static void compare(const work *w, const char *where, int64_t n, const left *is, const left *wants,
                    double within)
{
    if (is->status < 0) fail_msg("%s, %s, %d rows: %s", w->name, where, (int)n, is->text);
    if (wants->status < 0) fail_msg("%s, %d rows: %s", w->name, (int)n, wants->text);
    assert_int_equal(is->n_weight, wants->n_weight);
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(is->loss[i] - wants->loss[i]) <= within) ||
            !(fabs(is->other[i] - wants->other[i]) <= within))
            fail_msg("%s, %s, %d rows, step %d: losses %.17g and %.17g, not %.17g and %.17g",
                     w->name, where, (int)n, i, is->loss[i], is->other[i], wants->loss[i],
                     wants->other[i]);
    for (int i = 0; i < is->n_weight; i++)
        if (!(fabs(is->weight[i] - wants->weight[i]) <= within))
            fail_msg("%s, %s, %d rows: weight %d is %.17g, not %.17g", w->name, where, (int)n, i,
                     is->weight[i], wants->weight[i]);
}

/* ---- beside plain C -------------------------------------------------------------------------- */

/* One step of `two_towers` of a `plain` model; kernel is moved. Returns the loss. */
static double step_in_c(const rows *r, keel_dtype dtype, int n, double kernel[PIXELS * DIMS])
{
    static double a[ROWS_MAX][DIMS], b[ROWS_MAX][DIMS], da[ROWS_MAX][DIMS], db[ROWS_MAX][DIMS];
    double loss = 0;
    memset(da, 0, sizeof da);
    memset(db, 0, sizeof db);
    for (int i = 0; i < n; i++)
        for (int d = 0; d < DIMS; d++) {
            a[i][d] = b[i][d] = 0;
            for (int p = 0; p < PIXELS; p++) {
                a[i][d] += number(dtype, r->x, i * PIXELS + p) * kernel[p * DIMS + d];
                b[i][d] += number(dtype, r->y, i * PIXELS + p) * kernel[p * DIMS + d];
            }
        }
    for (int i = 0; i < n; i++) {
        double z[ROWS_MAX] = { 0 }, sum = 0;
        for (int j = 0; j < n; j++) {
            for (int d = 0; d < DIMS; d++) z[j] += 4 * a[i][d] * b[j][d];
            sum += exp(z[j]);
        }
        loss += (log(sum) - z[i]) / n;
        for (int j = 0; j < n; j++) {
            const double dz = 4 * (exp(z[j]) / sum - (i == j)) / n;
            for (int d = 0; d < DIMS; d++) da[i][d] += dz * b[j][d];
            for (int d = 0; d < DIMS; d++) db[j][d] += dz * a[i][d];
        }
    }
    for (int p = 0; p < PIXELS; p++)
        for (int d = 0; d < DIMS; d++)
            for (int i = 0; i < n; i++)
                kernel[p * DIMS + d] -= 0.25 * (number(dtype, r->x, i * PIXELS + p) * da[i][d] +
                                                number(dtype, r->y, i * PIXELS + p) * db[i][d]);
    return loss;
}

static void in_c(const work *w, int64_t n, left *out)
{
    rows r;
    const scene sc = { .model = { w->build[0](w->dtype) } };
    *out = (left){ 0 };
    make_rows(w->dtype, &r);
    keep_weights(&sc, out);
    for (int i = 0; i < STEPS; i++)
        out->loss[i] = step_in_c(&r, w->dtype, (int)(i == STEPS - 1 ? n - 2 : n), out->weight);
    keel_model_destroy(sc.model[0]);
}

static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-7" };
static const int64_t counts[] = { 7, 8, 12 };
enum { DEVICES = sizeof devices / sizeof *devices, COUNTS = sizeof counts / sizeof *counts };

static void each_row_meets_all_others_as_in_plain_c(void **unused)
{
    static const work works[] = {
        { "float32", two_towers, { plain }, KEEL_FLOAT32 },
        { "float64", two_towers, { plain }, KEEL_FLOAT64 },
        { "a loss of Keras", two_towers_of_keras, { plain }, KEEL_FLOAT32 },
        { "the same in float64", two_towers_of_keras, { plain }, KEEL_FLOAT64 }
    };
    (void)unused;
    for (int k = 0; k < 4; k++)
        for (int c = 0; c < COUNTS; c++) {
            left wants, is;
            in_c(&works[k], counts[c], &wants);
            assert_true(wants.loss[STEPS - 2] < wants.loss[0] - 0.1);
            for (int d = 0; d < DEVICES; d++) {
                run_on(&works[k], devices[d], 0, counts[c], &is);
                compare(&works[k], devices[d], counts[c], &is, &wants, k % 2 ? 1e-13 : 2e-5);
                assert_int_equal(is.traced, 2); /* numbers of rows */
            }
        }
}

/* ---- labels ---------------------------------------------------------------------------------- */

typedef struct labelled {
    scene sc;
    keel_step step;
} labelled;

static keel_status with_labels(void *context, keel_trace *t)
{
    labelled *l = context;
    const keel_traced a = call(t, l->sc.model[0], "x"), b = input(t, "fixed");
    const keel_scalar loss = meet(t, l->step, NULL, a, b);
    learn(t, &(keel_term){ loss, 1 }, 1, l->sc.model[0]);
    return keel_trace_return_scalar(t, "loss", loss);
}

static double labels_in_c(const rows *r, keel_dtype dtype, int n, const double *kernel)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int d = 0; d < DIMS && r->label[i] == r->label[j]; d++) {
                double a = 0;
                for (int p = 0; p < PIXELS; p++)
                    a += number(dtype, r->x, i * PIXELS + p) * kernel[p * DIMS + d];
                sum += 4 * a * number(dtype, r->fixed, j * DIMS + d);
            }
    return sum / (n * n);
}

/* Labels that float32, or float64, would hold for the same. */
static void whole_numbers_arrive_as_they_are(void **unused)
{
    static const keel_step steps[] = { labels_turned, labels_shaped, labels_subtracted };
    static const int64_t first[] = { 0, (int64_t)1 << 24, (int64_t)1 << 53, (int64_t)1 << 62 };
    enum { LABELS = 3, N = 9 };
    (void)unused;
    for (int k = 0; k < 3 * 4 * 2; k++) {
        const keel_dtype dtype = k % 2 ? KEEL_FLOAT64 : KEEL_FLOAT32;
        const int at = k / 2 % 4;
        labelled l = { { .model = { plain(dtype) } }, steps[k / 8] };
        const bool rounds = k / 8 == 2 && at > k % 2;
        keel_strategy *s;
        keel_function *f;
        left before = { 0 };
        rows r;
        double loss = 0;
        make_rows(dtype, &r);
        for (int i = 0; i < ROWS_MAX; i++) r.label[i] = first[at] + i * 5 % LABELS;
        keep_weights(&l.sc, &before);
        must(keel_strategy_create(&s, "cpu:0-2"));
        must(create(&f, with_labels, dtype, &l));
        const keel_status st = run_step(s, f, dtype, &r, N);
        if (rounds) {
            if (st != KEEL_EDATA || !strstr(keel_error(), "cannot tell from its neighbours"))
                fail_msg("case %d: %s '%s'", k, keel_status_name(st), keel_error());
        } else {
            if (st < 0) fail_msg("case %d: %s", k, keel_error());
            must(keel_function_scalar(f, "loss", &loss));
            const double wants = labels_in_c(&r, dtype, N, before.weight);
            if (fabs(loss - wants) > 1e-6) fail_msg("case %d: %.9g, not %.9g", k, loss, wants);
        }
        keel_function_destroy(f);
        keel_strategy_destroy(s);
        keel_model_destroy(l.sc.model[0]);
    }
}

/* ---- on any devices -------------------------------------------------------------------------- */

static const work works[] = {
    { "two towers", two_towers, { encoder }, KEEL_FLOAT32 },
    { "two towers in float64", two_towers, { encoder }, KEEL_FLOAT64 },
    { "several losses", several, { encoder, plain }, KEEL_FLOAT32 },
    { "two models", two_models, { encoder, plain }, KEEL_FLOAT32 },
    { "slopes", two_towers_by_slopes, { plain }, KEEL_FLOAT32 },
    { "dropped products", two_towers_dropped, { plain }, KEEL_FLOAT32 },
    { "two optimizers", two_optimizers, { encoder, plain }, KEEL_FLOAT32 },
    { "a model inside", with_a_model, { plain, lengths }, KEEL_FLOAT64 },
    { "without training", only_look, { encoder }, KEEL_FLOAT32 },
};
enum { WORKS = sizeof works / sizeof *works };

static void losses_and_weights_are_those_of_one_device(void **unused)
{
    (void)unused;
    for (int k = 0; k < WORKS; k++)
        for (int c = 0; c < COUNTS; c++)
            for (int shards = 0; shards <= SHARDS; shards += SHARDS) {
                left wants, is;
                run_on(&works[k], "cpu:0", shards, counts[c], &wants);
                for (int d = 1; d < DEVICES; d++) {
                    run_on(&works[k], devices[d], shards, counts[c], &is);
                    compare(&works[k], devices[d], counts[c], &is, &wants, shards ? 0 : 1e-4);
                }
            }
}

static void a_loss_of_two_gradients_moves_both_models(void **unused)
{
    static const work one = { "one optimizer", two_models, { encoder, plain }, KEEL_FLOAT32 },
                      two = { "two optimizers", two_optimizers, { encoder, plain }, KEEL_FLOAT32 };
    left a, b;
    (void)unused;
    run_on(&one, "cpu:0-2", 0, 8, &a);
    run_on(&two, "cpu:0-2", 0, 8, &b);
    compare(&two, "beside one", 8, &b, &a, 1e-6);
}

static void each_step_draws_numbers_of_its_own(void **unused)
{
    static const work w = { "dropped", values_dropped, { plain }, KEEL_FLOAT32 };
    left is;
    (void)unused;
    run_on(&w, "cpu:0-1", 0, 8, &is);
    if (is.status < 0) fail_msg("%s", is.text);
    assert_true(is.loss[0] != is.loss[1] && is.loss[1] != is.loss[2]);
}

/* Values that are made again for backward change no bit. */
static void recomputed_values_change_no_bit(void **unused)
{
    (void)unused;
    for (int k = 0; k < WORKS; k++) {
        left wants, is;
        keel_strategy *s;
        run_on(&works[k], "cpu:0-1", SHARDS, 12, &wants);
        must(keel_strategy_create(&s, "cpu:0-1"));
        must(keel_strategy_reproducible(s, SHARDS));
        keel_strategy_recompute(s, true);
        run(&works[k], s, 12, &is);
        compare(&works[k], "recomputed", 12, &is, &wants, 0);
        keel_strategy_destroy(s);
    }
}

static void a_loss_moves_its_weights_as_if_it_were_alone(void **unused)
{
    static const work alone = { "the first loss", several_first, { encoder }, KEEL_FLOAT32 };
    left all, first;
    (void)unused;
    run_on(&works[2], "cpu:0-2", 0, 8, &all);
    run_on(&alone, "cpu:0-2", 0, 8, &first);
    assert_true(all.n_weight > first.n_weight);
    all.n_weight = first.n_weight; /* those of the first model */
    memset(all.other, 0, sizeof all.other);
    compare(&alone, "beside others", 8, &all, &first, 1e-6);
}

static void stand_ins_have_the_bits_of_one(void **unused)
{
    static const keel_device_type *const kinds[] = { &standin_runs, &standin_stores,
                                                     &standin_sums };
    (void)unused;
    for (int k = 0; k < WORKS; k++)
        for (int kind = 0; kind < 3; kind++) {
            left wants, is;
            for (int n = 1; n <= 4; n++) {
                keel_device *device[4];
                keel_strategy *s;
                for (int i = 0; i < n; i++) device[i] = standin_open(kinds[kind], i);
                must(keel_strategy_create_devices(&s, device, n));
                must(keel_strategy_reproducible(s, SHARDS));
                run(&works[k], s, 12, n == 1 ? &wants : &is);
                if (n > 1) compare(&works[k], "stand-ins", 12, &is, &wants, 0);
                keel_strategy_destroy(s);
                for (int i = 0; i < n; i++) {
                    assert_int_equal(standin_of(device[i])->clocks.reports, 0);
                    device[i]->type->close(device[i]);
                }
            }
            left host;
            run_on(&works[k], "cpu:0", SHARDS, 12, &host);
            compare(&works[k], "a stand-in", 12, &wants, &host, 1e-4);
        }
}

typedef struct process {
    const work *w;
    keel_process_group group;
    int lanes;
    left out;
    const keel_device_type *type; /* lanes are devices; NULL: cores */
    int reports;                  /* of waits that are missing there */
} process;

static void *live(void *context)
{
    process *p = context;
    keel_strategy *s = NULL;
    keel_device *device[3] = { NULL };
    p->group.timeout = PATIENT;
    for (int i = 0; p->type && i < p->lanes; i++) device[i] = standin_open(p->type, i);
    p->out.status = p->type
                        ? keel_strategy_create_group_beside(&s, device, p->lanes, NULL, &p->group)
                        : open_lanes(&s, &p->group, p->lanes, 1);
    if (p->out.status >= 0) p->out.status = keel_strategy_reproducible(s, SHARDS);
    if (p->out.status >= 0) run(p->w, s, 12, &p->out);
    keel_strategy_destroy(s);
    for (int i = 0; p->type && i < p->lanes; i++) {
        p->reports += standin_of(device[i])->clocks.reports;
        device[i]->type->close(device[i]);
    }
    return NULL;
}

static void devices_of_processes_have_the_bits_of_one(void **unused)
{
    (void)unused;
    for (int k = 0; k < WORKS; k++) {
        left wants;
        keel_device *device = standin_open(&standin_runs, 0);
        keel_strategy *s;
        must(keel_strategy_create_devices(&s, &device, 1));
        must(keel_strategy_reproducible(s, SHARDS));
        run(&works[k], s, 12, &wants);
        keel_strategy_destroy(s);
        device->type->close(device);
        const int n = 2 + k % 2;
        thread_group group;
        process p[3] = { { 0 } };
        thread_group_begin(&group, n);
        for (int i = 0; i < n; i++)
            p[i] = (process){ .w = &works[k],
                              .group = thread_group_of(&group, i),
                              .lanes = 1 + (i + k) % 3,
                              .type = i % 2 ? &standin_stores : &standin_runs };
        live_together(live, p, sizeof *p, n);
        for (int i = 0; i < n; i++) {
            compare(&works[k], "devices of processes", 12, &p[i].out, &wants, 0);
            assert_int_equal(p[i].reports, 0);
        }
        thread_group_end(&group);
    }
}

static void processes_have_the_bits_of_one(void **unused)
{
    (void)unused;
    for (int k = 0; k < WORKS; k++) {
        left wants;
        run_on(&works[k], "cpu:0", SHARDS, 12, &wants);
        for (int n = 2; n <= 5; n += k % 2 + 1) {
            thread_group group;
            process p[THREADS_MAX] = { { 0 } };
            thread_group_begin(&group, n);
            for (int i = 0; i < n; i++)
                p[i] = (process){ .w = &works[k],
                                  .group = thread_group_of(&group, i),
                                  .lanes = 1 + (i + k) % 3 };
            live_together(live, p, sizeof *p, n);
            for (int i = 0; i < n; i++) compare(&works[k], "processes", 12, &p[i].out, &wants, 0);
            thread_group_end(&group);
        }
    }
}

/* Of two processes one has another loss; they would go on apart. */
static void processes_with_other_losses_are_refused(void **unused)
{
    static const work of_keras = { "a loss of Keras",
                                   two_towers_of_keras,
                                   { plain },
                                   KEEL_FLOAT32 },
                      of_ops = { "operations", two_towers, { plain }, KEEL_FLOAT32 };
    thread_group group;
    process p[2] = { { 0 } };
    (void)unused;
    thread_group_begin(&group, 2);
    for (int i = 0; i < 2; i++)
        p[i] = (process){ .w = i ? &of_keras : &of_ops,
                          .group = thread_group_of(&group, i),
                          .lanes = 1 };
    live_together(live, p, sizeof *p, 2);
    for (int i = 0; i < 2; i++)
        if (p[i].out.status >= 0 || p[i].out.loss[0] != 0)
            fail_msg("process %d: %s", i, p[i].out.text);
    thread_group_end(&group);
}

/* ---- what fails ------------------------------------------------------------------------------ */

/* The logarithm of a sum that a row makes negative: no number. */
static keel_status no_number(void *unused, keel_trace *t)
{
    (void)unused;
    const keel_traced all = op(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2)), input(t, "a"));
    return give_back(t, op(t, "ops.Log", NULL, times(t, op(t, "ops.Square", NULL, all), -1)));
}

/* A label of no class, in a loss of Keras. */
static keel_status no_class(void *unused, keel_trace *t)
{
    keel_scalar loss = -1;
    (void)unused;
    keel_trace_loss(t,
                    &(keel_named){ "sparse_categorical_crossentropy",
                                   KEEL_ARGS(KEEL_ARG_BOOL("from_logits", true)) },
                    input(t, "label"), input(t, "a"), KEEL_UNWEIGHTED, &loss);
    return keel_trace_return_scalar(t, "loss", loss);
}

static keel_status with_no_number(void *context, keel_trace *t)
{
    const scene *s = context;
    const keel_traced a = call(t, s->model[0], "x");
    learn(t, &(keel_term){ meet(t, no_number, NULL, a, a), 1 }, 1, s->model[0]);
    return KEEL_OK;
}

static keel_status with_no_class(void *context, keel_trace *t)
{
    const scene *s = context;
    const keel_traced a = call(t, s->model[0], "x");
    learn(t, &(keel_term){ meet(t, no_class, NULL, a, a), 1 }, 1, s->model[0]);
    return KEEL_OK;
}

static void what_fails_in_it_is_the_steps_failure(void **unused)
{
    static const struct {
        work w;
        keel_status status;
        const char *text;
    } cases[] = {
        { { "a loss that is no number", with_no_number, { plain }, KEEL_FLOAT32 },
          KEEL_ENUMERIC,
          "the loss of all rows is not finite" },
        { { "a label of no class", with_no_class, { plain }, KEEL_FLOAT32 },
          KEEL_EDATA,
          "is not in 0..2" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int d = 0; d < DEVICES; d++) {
            const scene sc = { .model = { plain(KEEL_FLOAT32) } };
            left before = { 0 }, is;
            keep_weights(&sc, &before);
            keel_model_destroy(sc.model[0]);
            run_on(&cases[i].w, devices[d], 0, 8, &is);
            if (is.status != cases[i].status || !strstr(is.text, cases[i].text))
                fail_msg("%s: %s '%s'", cases[i].w.name, keel_status_name(is.status), is.text);
            assert_memory_equal(is.weight, before.weight, sizeof is.weight);
        }
}

static void each_failing_allocation_is_an_error_without_a_leak(void **unused)
{
    scene sc = { .model = { plain(KEEL_FLOAT32) } };
    keel_strategy *s;
    rows r;
    (void)unused;
    make_rows(KEEL_FLOAT32, &r);
    must(keel_strategy_create(&s, "cpu:0"));
    const int64_t live = keel_memory_live();
    keel_status st = KEEL_ENOMEM;
    for (int64_t at = 0; st < 0; at++) {
        keel_function *f = NULL;
        keel_memory_fail_at(at);
        st = create(&f, two_towers, KEEL_FLOAT32, &sc);
        if (st >= 0) st = run_step(s, f, KEEL_FLOAT32, &r, 8);
        if (st >= 0) st = run_step(s, f, KEEL_FLOAT32, &r, 5);
        keel_memory_fail_at(-1);
        if (st < 0 && st != KEEL_ENOMEM) fail_msg("allocation %d: %s", (int)at, keel_error());
        if (st < 0 && f) must(run_step(s, f, KEEL_FLOAT32, &r, 5)); /* it can go on */
        keel_function_destroy(f);
        assert_int_equal(keel_memory_live(), live);
        assert_true(at < 5000);
    }
    keel_strategy_destroy(s);
    keel_model_destroy(sc.model[0]);
}

/* More numbers of rows than are kept, again and again. */
static void any_numbers_of_rows_may_alternate(void **unused)
{
    scene sc = { .model = { plain(KEEL_FLOAT32) } };
    keel_strategy *s;
    keel_function *f;
    rows r;
    double kernel[WEIGHTS_MAX], loss;
    left of = { 0 };
    (void)unused;
    make_rows(KEEL_FLOAT32, &r);
    keep_weights(&sc, &of);
    memcpy(kernel, of.weight, sizeof kernel);
    must(keel_strategy_create(&s, "cpu:0-2"));
    must(create(&f, two_towers, KEEL_FLOAT32, &sc));
    for (int i = 0; i < 40; i++) {
        const int n = 2 + i * 5 % 11;
        must(run_step(s, f, KEEL_FLOAT32, &r, n));
        must(keel_function_scalar(f, "loss", &loss));
        const double wants = step_in_c(&r, KEEL_FLOAT32, n, kernel);
        if (fabs(loss - wants) > 2e-4) fail_msg("step %d: %.9g, not %.9g", i, loss, wants);
    }
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    keel_model_destroy(sc.model[0]);
}

/* The shape of an input whose dims are open, in any step. */
static keel_status knows_its_shape(void *context, keel_trace *t)
{
    keel_shape shape = { 0 };
    keel_trace_input_shape(t, "open", &shape);
    *(keel_shape *)context = shape;
    return keel_trace_return(t, "open", input(t, "open"));
}

static void a_step_knows_the_shapes_of_its_inputs(void **unused)
{
    static float x[2 * 3 * 5];
    keel_shape shape = { 0 };
    keel_strategy *s;
    keel_function *f;
    const keel_data_field open = { "open", KEEL_FLOAT32, { 2, { 3, KEEL_DIM_OPEN } } };
    (void)unused;
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_function_create(
        &f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = knows_its_shape,
                                      .context = &shape, .input = &open, .n_input = 1 }));
    for (int64_t dim = 5; dim > 3; dim--) {
        must(keel_strategy_run(s, f, &(keel_tensor){ KEEL_FLOAT32, { 3, { 2, 3, dim } }, x }, 1));
        assert_int_equal(shape.rank, 2);
        assert_int_equal(shape.dim[0], 3);
        assert_int_equal(shape.dim[1], dim);
    }
    keel_function_destroy(f);
    keel_strategy_destroy(s);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static keel_status returns_nothing(void *unused, keel_trace *t)
{
    keel_scalar loss = -1;
    (void)unused;
    keel_trace_mean(t, input(t, "a"), KEEL_UNWEIGHTED, &loss);
    return keel_trace_return_scalar(t, "mean", loss);
}

static keel_status returns_a_value(void *unused, keel_trace *t)
{
    (void)unused;
    return keel_trace_return(t, "loss", input(t, "a"));
}

static keel_status knows_a_fact(void *unused, keel_trace *t)
{
    keel_traced row = -1;
    (void)unused;
    keel_trace_fact(t, KEEL_FACT_ROW, &row);
    return give_back(t, row);
}

static keel_status calls_a_model(void *context, keel_trace *t)
{
    const scene *s = context;
    keel_traced a = input(t, "a");
    keel_trace_model(t, s->model[1], false, &a, 1, &a);
    return give_back(t, a);
}

static keel_status takes_gradients(void *context, keel_trace *t)
{
    const scene *s = context;
    keel_scalar loss = -1;
    keel_gradients g = -1;
    keel_trace_mean(t, input(t, "a"), KEEL_UNWEIGHTED, &loss);
    return keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ s->model[0] }, 1,
                                &g);
}

static keel_status applies(void *unused, keel_trace *t)
{
    (void)unused;
    return keel_trace_apply(t, 0, &(keel_apply){ { "sgd" } });
}

static keel_status is_nested(void *unused, keel_trace *t)
{
    (void)unused;
    const keel_traced a = input(t, "a");
    return keel_trace_return_scalar(t, "loss", meet(t, spread, NULL, a, -1));
}

static keel_status asks_for_another(void *unused, keel_trace *t)
{
    (void)unused;
    return give_back(t, input(t, "other"));
}

static keel_status asks_for_its_shape(void *unused, keel_trace *t)
{
    (void)unused;
    rows_of(t, "other");
    return give_back(t, input(t, "a"));
}

static keel_status has_a_target_with_a_gradient(void *unused, keel_trace *t)
{
    keel_scalar loss = -1;
    (void)unused;
    keel_trace_loss(t, &(keel_named){ "mse" }, input(t, "a"), input(t, "b"), KEEL_UNWEIGHTED,
                    &loss);
    return keel_trace_return_scalar(t, "loss", loss);
}

static keel_status adds_a_loss(void *unused, keel_trace *t)
{
    (void)unused;
    return give_back(
        t, op(t, "ActivityRegularization", KEEL_ARGS(KEEL_ARG_FLOAT("l2", 0.5)), input(t, "a")));
}

static keel_status fails(void *unused, keel_trace *t)
{
    (void)unused;
    (void)t;
    return KEEL_EIO;
}

static keel_step refused; /* the step of the loss below */

static keel_status with_refused(void *context, keel_trace *t)
{
    scene *s = context;
    const keel_traced a = call(t, s->model[0], "x");
    learn(t, &(keel_term){ meet(t, refused, s, a, a), 1 }, 1, s->model[0]);
    return KEEL_OK;
}

static void what_its_step_may_not_do_is_refused_by_name(void **unused)
{
    static const struct {
        keel_step step;
        keel_status status;
        const char *text;
    } cases[] = {
        { returns_nothing, KEEL_EARG, "the step must return its loss" },
        { returns_a_value, KEEL_EARG, "the step must return its loss" },
        { knows_a_fact, KEEL_EUNSUP, "KEEL_FACT_ROW in a loss of all rows" },
        { calls_a_model, KEEL_EUNSUP, "the model 'tower' has weights" },
        { takes_gradients, KEEL_EARG, "takes gradients for weights" },
        { applies, KEEL_EARG, "applies an optimizer" },
        { is_nested, KEEL_EUNSUP, "in the step of another" },
        { asks_for_another, KEEL_EARG, "the loss of all rows has no input 'other'" },
        { asks_for_its_shape, KEEL_EARG, "the loss of all rows has no input 'other'" },
        { has_a_target_with_a_gradient, KEEL_EUNSUP,
          "its targets depend on values that get a gradient" },
        { adds_a_loss, KEEL_EUNSUP, "a layer in it adds a loss of its own" },
        { fails, KEEL_EIO, "the step returned" },
    };
    static const work w = { "refused", with_refused, { plain, plain }, KEEL_FLOAT32 };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        left is;
        refused = cases[i].step;
        run_on(&w, "cpu:0-1", 0, 8, &is);
        if (is.status != cases[i].status || !strstr(is.text, cases[i].text))
            fail_msg("case %d: %s '%s'", (int)i, keel_status_name(is.status), is.text);
    }
}

typedef struct given {
    keel_whole_loss loss;
    int what;
} given;

/* Losses that are no such: by number. */
static keel_status with_given(void *context, keel_trace *t)
{
    const int what = *(const int *)context;
    const keel_traced x = input(t, "x"), label = input(t, "label");
    const char *const twice[] = { "a", "a" }, *const named[] = { "a", NULL };
    const char *const plainly[] = { "a", "b" };
    const keel_traced real[] = { x, x }, whole[] = { label, label }, none[] = { x, 99 };
    keel_scalar loss = -1;
    const keel_whole_loss of[] = {
        { plainly, real, 0, info }, { twice, real, 2, info },    { named, real, 2, info },
        { plainly, none, 2, info }, { plainly, whole, 2, info }, { plainly, real, 2, NULL },
    };
    return keel_trace_whole_loss(t, &of[what], &loss);
}

static void what_is_no_such_loss_is_refused_by_name(void **unused)
{
    static const char *const texts[] = {
        "a loss of all rows needs values",  "two inputs are named 'a'", "input 1 has no name",
        "input 1 is no value of this step", "is given no real value",   "needs a step",
    };
    (void)unused;
    for (int i = 0; i < 6; i++) {
        rows r;
        keel_strategy *s;
        keel_function *f;
        make_rows(KEEL_FLOAT32, &r);
        must(keel_strategy_create(&s, "cpu:0"));
        must(create(&f, with_given, KEEL_FLOAT32, &i));
        const keel_status st = run_step(s, f, KEEL_FLOAT32, &r, 8);
        if (st != KEEL_EARG || !strstr(keel_error(), texts[i]))
            fail_msg("case %d: %s '%s'", i, keel_status_name(st), keel_error());
        keel_function_destroy(f);
        keel_strategy_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_meets_all_others_as_in_plain_c),
        cmocka_unit_test(whole_numbers_arrive_as_they_are),
        cmocka_unit_test(losses_and_weights_are_those_of_one_device),
        cmocka_unit_test(a_loss_of_two_gradients_moves_both_models),
        cmocka_unit_test(each_step_draws_numbers_of_its_own),
        cmocka_unit_test(recomputed_values_change_no_bit),
        cmocka_unit_test(a_loss_moves_its_weights_as_if_it_were_alone),
        cmocka_unit_test(stand_ins_have_the_bits_of_one),
        cmocka_unit_test(processes_have_the_bits_of_one),
        cmocka_unit_test(devices_of_processes_have_the_bits_of_one),
        cmocka_unit_test(processes_with_other_losses_are_refused),
        cmocka_unit_test(what_fails_in_it_is_the_steps_failure),
        cmocka_unit_test(each_failing_allocation_is_an_error_without_a_leak),
        cmocka_unit_test(any_numbers_of_rows_may_alternate),
        cmocka_unit_test(a_step_knows_the_shapes_of_its_inputs),
        cmocka_unit_test(what_its_step_may_not_do_is_refused_by_name),
        cmocka_unit_test(what_is_no_such_loss_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
