/* Contrastive learning without labels (SimCLR, arXiv 2002.05709): two noisy views of the same thing
 * are to be nearer to each other than to the views of all others. The loss compares every row of
 * the step with every other, whatever device has it (keel/whole_loss.h). */
#include <keel/keel.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 512, BATCH = 64, EPOCHS = 30, PIXELS = 16, KINDS = 4, DIMS = 4 };

static float left[ROWS][PIXELS], right[ROWS][PIXELS];

static keel_status build(keel_model **out)
{
    keel_status s = keel_model_create(out, "encoder", KEEL_FLOAT32, 1);
    if (s >= 0) s = keel_model_add(*out, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", PIXELS)));
    if (s >= 0) s = keel_model_add(*out, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 32)));
    if (s >= 0) s = keel_model_add(*out, "BatchNormalization", NULL);
    if (s >= 0) s = keel_model_add(*out, "ReLU", NULL);
    if (s >= 0) s = keel_model_add(*out, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", DIMS)));
    return s < 0 ? s : keel_model_add(*out, "UnitNormalization", NULL); /* vectors of length 1 */
}

static keel_traced op(keel_trace *t, const char *name, const keel_arg *args, keel_traced x)
{
    keel_traced y = -1;
    keel_trace_call(t, name, args, NULL, &x, 1, &y);
    return y;
}

static keel_traced both(keel_trace *t, const char *name, keel_traced x1, keel_traced x2)
{
    keel_traced y = -1;
    keel_trace_call(t, name, NULL, NULL, (keel_traced[]){ x1, x2 }, 2, &y);
    return y;
}

/* The mean over rows i of -log softmax(a b' / 0.1)[i, i]: "a" and "b" are [rows, DIMS], and have
 * all rows of the step. */
static keel_status info_nce(void *context, keel_trace *t)
{
    keel_traced a = -1, b = -1, near = -1, number = -1;
    keel_scalar loss = -1;
    keel_shape shape = { 0 };
    (void)context;
    keel_trace_input(t, "a", &a);
    keel_trace_input(t, "b", &b);
    keel_trace_input(t, "number", &number);
    keel_trace_input_shape(t, "number", &shape);
    b = op(t, "ops.Transpose", KEEL_ARGS(KEEL_ARG_INTS("axes", 0, 2, 1)), b);
    keel_trace_call(t, "ops.Multiply", NULL, KEEL_ARGS(KEEL_ARG_FLOAT("x2", 10)),
                    (keel_traced[]){ both(t, "ops.Matmul", a, b) }, 1, &near);
    const keel_traced own =
        op(t, "ops.OneHot", KEEL_ARGS(KEEL_ARG_INT("num_classes", shape.dim[0])), number);
    const keel_traced right_ones =
        both(t, "ops.Multiply", own, op(t, "ops.LogSoftmax", NULL, near));
    keel_traced sum = op(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INTS("axis", 2)), right_ones);
    sum = op(t, "ops.Mean", KEEL_ARGS(KEEL_ARG_INTS("axis", 1)), op(t, "ops.Negative", NULL, sum));
    keel_trace_mean(t, sum, KEEL_UNWEIGHTED, &loss);
    return keel_trace_return_scalar(t, "loss", loss);
}

/* One encoder sees both views; each row brings its own two vectors and its number in the step. */
static keel_status contrast(void *context, keel_trace *t)
{
    keel_traced of[3] = { -1, -1, -1 };
    keel_scalar loss = -1;
    keel_gradients g = -1;
    keel_trace_input(t, "left", &of[0]);
    keel_trace_input(t, "right", &of[1]);
    keel_trace_input(t, "number", &of[2]);
    for (int i = 0; i < 2; i++) keel_trace_model(t, context, true, &of[i], 1, &of[i]);
    keel_trace_whole_loss(t,
                          &(keel_whole_loss){ .name = (const char *const[]){ "a", "b", "number" },
                                              .value = of,
                                              .n = 3,
                                              .step = info_nce },
                          &loss);
    keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ context }, 1, &g);
    keel_trace_apply(
        t, g, &(keel_apply){ { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.005)) } });
    return keel_trace_return_scalar(t, "loss", loss);
}

/* A view of thing i: its place in one of four clusters, in some pixels, and noise in all. */
static void draw(float view[PIXELS], int i, int salt)
{
    const int kind = i % KINDS;
    for (int p = 0; p < PIXELS; p++) {
        const float own = p / 4 == kind ? 2.0f + (float)(i * 37 % 101) / 101 : 0;
        view[p] = own + (float)((i * 61 + p * 29 + salt * 17) % 97 - 48) / 96;
    }
}

int main(void)
{
    static int32_t number[BATCH];
    keel_model *encoder = NULL;
    keel_strategy *devices = NULL;
    keel_function *f = NULL;
    double loss = 0;
    const keel_data_field inputs[] = { { "left", KEEL_FLOAT32, { 1, { PIXELS } } },
                                       { "right", KEEL_FLOAT32, { 1, { PIXELS } } },
                                       { "number", KEEL_INT32, { 0 } } };
    for (int i = 0; i < ROWS; i++) {
        draw(left[i], i, 1);
        draw(right[i], i, 2);
    }
    for (int i = 0; i < BATCH; i++) number[i] = i;
    keel_status s = build(&encoder);
    if (s >= 0) s = keel_strategy_create(&devices, "cpu:0-1");
    if (s >= 0)
        s = keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS,
                                                               .step = contrast, .context = encoder,
                                                               .input = inputs, .n_input = 3 });
    for (int epoch = 0; epoch < EPOCHS && s >= 0; epoch++) {
        for (int64_t at = 0; at < ROWS && s >= 0; at += BATCH) {
            const keel_tensor in[] = { { KEEL_FLOAT32, { 2, { BATCH, PIXELS } }, left[at] },
                                       { KEEL_FLOAT32, { 2, { BATCH, PIXELS } }, right[at] },
                                       { KEEL_INT32, { 1, { BATCH } }, number } };
            s = keel_strategy_run(devices, f, in, 3);
        }
        if (s >= 0) s = keel_function_scalar(f, "loss", &loss);
        if (s >= 0 && epoch % 10 == 9) printf("epoch %2d  loss %.4f\n", epoch + 1, loss);
    }
    if (s >= 0) s = keel_model_save(encoder, "encoder.keras");
    if (s < 0) fprintf(stderr, "train_contrastive: %s\n", keel_error());
    keel_function_destroy(f);
    keel_strategy_destroy(devices);
    keel_model_destroy(encoder);
    return s < 0 || !(loss < log(BATCH) - 1);
}
