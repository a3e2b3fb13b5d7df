/* A Siamese network: one tower with one set of weights is called on two inputs, and learns to put
 * pairs of the same kind near each other and others apart (contrastive loss, as in Keras's guide
 * "Image similarity estimation using a Siamese Network with a contrastive loss"). The loss is made
 * of operations of keras.ops. */
#include <keel/keel.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 512, BATCH = 64, EPOCHS = 40, KINDS = 4 };

static float a[ROWS][2], b[ROWS][2], other[ROWS][1];

static keel_status build(keel_model **out)
{
    keel_status s = keel_model_create(out, "tower", KEEL_FLOAT32, 1);
    if (s >= 0) s = keel_model_add(*out, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 2)));
    if (s >= 0)
        s = keel_model_add(
            *out, "Dense",
            KEEL_ARGS(KEEL_ARG_INT("units", 32), KEEL_ARG_STR("activation", "relu")));
    return s < 0 ? s : keel_model_add(*out, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 4)));
}

static keel_traced op(keel_trace *t, const char *name, keel_traced x)
{
    keel_traced y = -1;
    keel_trace_call(t, name, NULL, NULL, &x, 1, &y);
    return y;
}

static keel_traced with(keel_trace *t, const char *name, keel_traced x, double number)
{
    keel_traced y = -1;
    keel_trace_call(t, name, NULL, KEEL_ARGS(KEEL_ARG_FLOAT("x2", number)), &x, 1, &y);
    return y;
}

static keel_traced both(keel_trace *t, const char *name, keel_traced x1, keel_traced x2)
{
    keel_traced y = -1;
    keel_trace_call(t, name, NULL, NULL, (keel_traced[]){ x1, x2 }, 2, &y);
    return y;
}

/* mean((1 - y) d^2 + y max(1 - d, 0)^2), d the distance of two towers, y 1 for different kinds */
static keel_status compare(void *context, keel_trace *t)
{
    keel_traced left = -1, right = -1, differ = -1, distance = -1;
    keel_scalar loss = -1;
    keel_gradients g = -1;
    keel_trace_input(t, "a", &left);
    keel_trace_input(t, "b", &right);
    keel_trace_input(t, "other", &differ);
    keel_trace_model(t, context, true, &left, 1, &left);
    keel_trace_model(t, context, true, &right, 1, &right);
    const keel_traced square = op(t, "ops.Square", both(t, "ops.Subtract", left, right));
    keel_trace_call(t, "ops.Sum",
                    KEEL_ARGS(KEEL_ARG_INT("axis", 1), KEEL_ARG_BOOL("keepdims", true)), NULL,
                    &square, 1, &distance);
    distance = op(t, "ops.Sqrt", with(t, "ops.Maximum", distance, 1e-7));
    const keel_traced gap = with(t, "ops.Add", op(t, "ops.Negative", distance), 1);
    const keel_traced apart = op(t, "ops.Square", with(t, "ops.Maximum", gap, 0));
    const keel_traced same = with(t, "ops.Add", op(t, "ops.Negative", differ), 1);
    keel_trace_mean(t,
                    both(t, "ops.Add", both(t, "ops.Multiply", same, op(t, "ops.Square", distance)),
                         both(t, "ops.Multiply", differ, apart)),
                    KEEL_UNWEIGHTED, &loss);
    keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ context }, 1, &g);
    keel_trace_apply(
        t, g, &(keel_apply){ { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.005)) } });
    return keel_trace_return_scalar(t, "loss", loss);
}

/* A point of one of four clusters. */
static void draw(float point[2], int kind, int i)
{
    point[0] = cosf(1.5708f * (float)kind) + (float)(i * 37 % 101 - 50) / 150;
    point[1] = sinf(1.5708f * (float)kind) + (float)(i * 61 % 97 - 48) / 150;
}

int main(void)
{
    keel_model *tower = NULL;
    keel_strategy *devices = NULL;
    keel_function *f = NULL;
    double loss = 1;
    const keel_data_field inputs[] = { { "a", KEEL_FLOAT32, { 1, { 2 } } },
                                       { "b", KEEL_FLOAT32, { 1, { 2 } } },
                                       { "other", KEEL_FLOAT32, { 1, { 1 } } } };
    for (int i = 0; i < ROWS; i++) {
        const int of_a = i % KINDS, of_b = i * 7 / 13 % 2 ? of_a : i * 5 / 3 % KINDS;
        draw(a[i], of_a, i);
        draw(b[i], of_b, 3 * i + 1);
        other[i][0] = of_a != of_b;
    }
    keel_status s = build(&tower);
    if (s >= 0) s = keel_strategy_create(&devices, "cpu:0-1");
    if (s >= 0)
        s = keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS,
                                                               .step = compare, .context = tower,
                                                               .input = inputs, .n_input = 3 });
    for (int epoch = 0; epoch < EPOCHS && s >= 0; epoch++) {
        for (int64_t at = 0; at < ROWS && s >= 0; at += BATCH) {
            const keel_tensor in[] = { { KEEL_FLOAT32, { 2, { BATCH, 2 } }, a[at] },
                                       { KEEL_FLOAT32, { 2, { BATCH, 2 } }, b[at] },
                                       { KEEL_FLOAT32, { 2, { BATCH, 1 } }, other[at] } };
            s = keel_strategy_run(devices, f, in, 3);
        }
        if (s >= 0) s = keel_function_scalar(f, "loss", &loss);
        if (s >= 0 && epoch % 10 == 9) printf("epoch %2d  loss %.4f\n", epoch + 1, loss);
    }
    if (s >= 0) s = keel_model_save(tower, "tower.keras");
    if (s < 0) fprintf(stderr, "train_siamese: %s\n", keel_error());
    keel_function_destroy(f);
    keel_strategy_destroy(devices);
    keel_model_destroy(tower);
    return s < 0 || loss > 0.1;
}
