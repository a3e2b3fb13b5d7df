/* Losses of all rows of a step together, computed by a step of the caller's: each row meets all
 * others, on any devices, and weights and losses are those of one device. */
#include <math.h>
#include <string.h>
#include "must.h"

enum { ROWS_MAX = 12, PIXELS = 5, DIMS = 3, STEPS = 4 };

/* ---- steps ----------------------------------------------------------------------------------- */

static keel_traced op(keel_trace *t, const char *name, keel_traced x)
{
    keel_traced y = -1;
    keel_trace_call(t, name, NULL, NULL, &x, 1, &y);
    return y;
}

static keel_traced both(keel_trace *t, const char *name, keel_traced a, keel_traced b)
{
    keel_traced y = -1;
    keel_trace_call(t, name, NULL, NULL, (keel_traced[]){ a, b }, 2, &y);
    return y;
}

static keel_traced times(keel_trace *t, keel_traced x, double number)
{
    keel_traced y = -1;
    keel_trace_call(t, "ops.Multiply", NULL, KEEL_ARGS(KEEL_ARG_FLOAT("x2", number)), &x, 1, &y);
    return y;
}

static keel_traced input(keel_trace *t, const char *name)
{
    keel_traced x = -1;
    keel_trace_input(t, name, &x);
    return x;
}

/* InfoNCE: row i of "a" is to be nearer to row i of "b" than to any other, by 4 times their
 * product: the mean over i of -log softmax(4 a b')[i, i]. "number" is the number of a row. */
static keel_status contrast(void *unused, keel_trace *t)
{
    keel_traced same = -1, all = -1, turned = -1;
    keel_scalar loss = -1;
    keel_shape shape = { 0 };
    (void)unused;
    keel_trace_input_shape(t, "a", &shape);
    if (shape.rank != 2 || shape.dim[1] != DIMS) return KEEL_ESHAPE;
    keel_trace_call(t, "ops.Transpose", KEEL_ARGS(KEEL_ARG_INTS("axes", 0, 2, 1)), NULL,
                    (keel_traced[]){ input(t, "b") }, 1, &turned);
    const keel_traced near = times(t, both(t, "ops.Matmul", input(t, "a"), turned), 4);
    const keel_traced log_of = op(t, "ops.LogSoftmax", near);
    keel_trace_call(t, "ops.OneHot", KEEL_ARGS(KEEL_ARG_INT("num_classes", shape.dim[0])), NULL,
                    (keel_traced[]){ input(t, "number") }, 1, &same);
    keel_trace_call(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2)), NULL,
                    (keel_traced[]){ both(t, "ops.Multiply", same, log_of) }, 1, &all);
    keel_trace_mean(t, times(t, all, -1.0 / (double)shape.dim[0]), KEEL_UNWEIGHTED, &loss);
    return keel_trace_return_scalar(t, "loss", loss);
}

static keel_status train(void *context, keel_trace *t)
{
    keel_traced tower[2];
    keel_scalar loss = -1;
    keel_gradients g = -1;
    tower[0] = input(t, "x");
    tower[1] = input(t, "y");
    for (int i = 0; i < 2; i++) keel_trace_model(t, context, true, &tower[i], 1, &tower[i]);
    const keel_traced in[] = { tower[0], tower[1], input(t, "number") };
    keel_trace_whole_loss(
        t,
        &(keel_whole_loss){
            .name = (const char *[]){ "a", "b", "number" }, .value = in, .n = 3, .step = contrast },
        &loss);
    keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ context }, 1, &g);
    keel_trace_apply(t, g,
                     &(keel_apply){ { "sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.25)) } });
    return keel_trace_return_scalar(t, "loss", loss);
}

static keel_model *dense(void)
{
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, "tower", KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(PIXELS), NULL, &x));
    x = must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", DIMS)), x);
    must(keel_model_outputs(m, &x, 1));
    return m;
}

static void run(const char *devices, int64_t rows, double loss[STEPS], float kernel[PIXELS * DIMS])
{
    static float x[ROWS_MAX * PIXELS], y[ROWS_MAX * PIXELS];
    static int64_t number[ROWS_MAX];
    keel_model *const m = dense();
    keel_strategy *s;
    keel_function *f;
    keel_tensor k;
    const keel_data_field inputs[] = { { "x", KEEL_FLOAT32, { 1, { PIXELS } } },
                                       { "y", KEEL_FLOAT32, { 1, { PIXELS } } },
                                       { "number", KEEL_INT64, { 0 } } };
    for (int i = 0; i < ROWS_MAX * PIXELS; i++) {
        x[i] = (float)(i * 37 % 16) / 8 - 1;
        y[i] = x[i] + (float)(i * 53 % 16) / 16 - 0.5f;
    }
    for (int i = 0; i < ROWS_MAX; i++) number[i] = i;
    must(keel_strategy_create(&s, devices));
    must(keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = train,
                                                            .context = m, .input = inputs,
                                                            .n_input = 3 }));
    for (int i = 0; i < STEPS; i++) {
        const int64_t n = i == STEPS - 1 ? rows - 2 : rows;
        const keel_tensor in[] = { { KEEL_FLOAT32, { 2, { n, PIXELS } }, x },
                                   { KEEL_FLOAT32, { 2, { n, PIXELS } }, y },
                                   { KEEL_INT64, { 1, { n } }, number } };
        must(keel_strategy_run(s, f, in, 3));
        must(keel_function_scalar(f, "loss", &loss[i]));
    }
    must(keel_model_get_weight(m, "dense/kernel", &k));
    memcpy(kernel, k.data, PIXELS * DIMS * sizeof *kernel);
    keel_tensor_free(&k);
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
}

static void each_row_meets_all_others_on_any_devices(void **unused)
{
    static const char *const devices[] = { "cpu:0-1", "cpu:0-2", "cpu:0-7" };
    static const int64_t rows[] = { 7, 8, 12 };
    (void)unused;
    for (int r = 0; r < 3; r++) {
        double one[STEPS], loss[STEPS];
        float of_one[PIXELS * DIMS], kernel[PIXELS * DIMS];
        run("cpu:0", rows[r], one, of_one);
        assert_true(one[STEPS - 2] < one[0] - 0.1);
        for (int d = 0; d < 3; d++) {
            run(devices[d], rows[r], loss, kernel);
            for (int i = 0; i < STEPS; i++)
                if (fabs(loss[i] - one[i]) > 1e-5)
                    fail_msg("%s, %d rows, step %d: loss %.9g, alone %.9g", devices[d],
                             (int)rows[r], i, loss[i], one[i]);
            for (int i = 0; i < PIXELS * DIMS; i++)
                if (fabsf(kernel[i] - of_one[i]) > 1e-5f)
                    fail_msg("%s, %d rows: weight %d is %.9g, alone %.9g", devices[d], (int)rows[r],
                             i, (double)kernel[i], (double)of_one[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_meets_all_others_on_any_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
