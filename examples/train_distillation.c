/* A training loop of one's own: a small network learns what a large one says. The large one, the
 * teacher, learns by keel_fit whether points lie inside of a circle. The student then learns from
 * the labels and from the teacher's softened probabilities at once, as in Keras's guide "Knowledge
 * Distillation". In Keras the step would be the train_step of a class. */
#include <keel/keel.h>
#include <stdio.h>

enum { ROWS = 1000, BATCH = 64, EPOCHS = 30 };

typedef struct school {
    keel_model *teacher, *student;
} school;

static float x[ROWS][2];
static int32_t y[ROWS];

static keel_status build(keel_model **out, const char *name, int64_t units)
{
    const keel_arg hidden[] = { KEEL_ARG_INT("units", units),
                                KEEL_ARG_STR("activation", "relu"),
                                { .key = NULL } };
    keel_status s = keel_model_create(out, name, KEEL_FLOAT32, 1);
    if (s >= 0) s = keel_model_add(*out, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 2)));
    if (s >= 0) s = keel_model_add(*out, "Dense", hidden);
    if (s >= 0) s = keel_model_add(*out, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 2)));
    return s;
}

/* softmax(logits / temperature) */
static keel_traced soften(keel_trace *t, keel_traced logits, double temperature)
{
    keel_traced p = -1;
    keel_trace_call(t, "ops.Divide", NULL, KEEL_ARGS(KEEL_ARG_FLOAT("x2", temperature)), &logits, 1,
                    &p);
    keel_trace_call(t, "Softmax", NULL, NULL, &p, 1, &p);
    return p;
}

static keel_status distill(void *context, keel_trace *t)
{
    const school *m = context;
    const double alpha = 0.1, temperature = 3;
    keel_traced in = -1, label = -1, says = -1, taught = -1;
    keel_scalar own = -1, distilled = -1;
    keel_gradients g = -1;
    keel_trace_input(t, "x", &in);
    keel_trace_input(t, "y", &label);
    keel_trace_model(t, m->teacher, false, &in, 1, &taught);
    keel_trace_model(t, m->student, true, &in, 1, &says);
    keel_trace_loss(t,
                    &(keel_named){ "SparseCategoricalCrossentropy",
                                   KEEL_ARGS(KEEL_ARG_BOOL("from_logits", true)) },
                    label, says, KEEL_UNWEIGHTED, &own);
    keel_trace_loss(t, &(keel_named){ "KLDivergence" }, soften(t, taught, temperature),
                    soften(t, says, temperature), KEEL_UNWEIGHTED, &distilled);
    const keel_term terms[] = { { own, alpha },
                                { distilled, (1 - alpha) * temperature * temperature } };
    keel_trace_gradients(t, terms, 2, &(keel_watched){ m->student }, 1, &g);
    keel_trace_apply(t, g,
                     &(keel_apply){ { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.01)) } });
    keel_trace_return_scalar(t, "own", own);
    return keel_trace_return_scalar(t, "distilled", distilled);
}

static keel_status teach(keel_model *m, keel_strategy *s, const keel_tensor *points,
                         const keel_tensor *labels)
{
    keel_dataset *data = NULL;
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = 20 };
    keel_status st = keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" },
                            .loss = { { "SparseCategoricalCrossentropy",
                                        KEEL_ARGS(KEEL_ARG_BOOL("from_logits", true)) } } });
    if (st >= 0) st = keel_dataset_from_arrays(&data, points, labels, NULL);
    if (st >= 0) st = keel_fit(m, s, data, &options, NULL);
    keel_dataset_destroy(data);
    return st;
}

/* One pass over the rows; the last step has 40, and counts exactly as it should. */
static keel_status learn(keel_strategy *s, keel_function *f)
{
    for (int64_t at = 0; at < ROWS; at += BATCH) {
        const int64_t n = ROWS - at < BATCH ? ROWS - at : BATCH;
        const keel_tensor in[] = { { KEEL_FLOAT32, { 2, { n, 2 } }, x[at] },
                                   { KEEL_INT32, { 1, { n } }, y + at } };
        const keel_status st = keel_strategy_run(s, f, in, 2);
        if (st < 0) return st;
    }
    return KEEL_OK;
}

int main(void)
{
    school m = { NULL, NULL };
    keel_strategy *devices = NULL;
    keel_function *f = NULL;
    double own = 0, distilled = 1;
    const keel_tensor points = { KEEL_FLOAT32, { 2, { ROWS, 2 } }, x };
    const keel_tensor labels = { KEEL_INT32, { 1, { ROWS } }, y };
    const keel_data_field inputs[] = { { "x", KEEL_FLOAT32, { 1, { 2 } } },
                                       { "y", KEEL_INT32, { 0 } } };
    const keel_function_options options = { KEEL_FUNCTION_OPTIONS, .step = distill, .context = &m,
                                            .input = inputs, .n_input = 2 };
    for (int i = 0; i < ROWS; i++) {
        x[i][0] = (float)(i * 37 % 101) / 50 - 1;
        x[i][1] = (float)(i * 61 % 97) / 48 - 1;
        y[i] = x[i][0] * x[i][0] + x[i][1] * x[i][1] < 0.64f;
    }
    keel_status s = build(&m.teacher, "teacher", 64);
    if (s >= 0) s = build(&m.student, "student", 12);
    if (s >= 0) s = keel_strategy_create(&devices, "cpu:0-1");
    if (s >= 0) s = teach(m.teacher, devices, &points, &labels);
    if (s >= 0) s = keel_function_create(&f, &options);
    for (int epoch = 0; epoch < EPOCHS && s >= 0; epoch++) {
        s = learn(devices, f);
        if (s >= 0) s = keel_function_scalar(f, "own", &own);
        if (s >= 0) s = keel_function_scalar(f, "distilled", &distilled);
        if (s >= 0 && epoch % 10 == 9)
            printf("epoch %2d  labels %.4f  teacher %.5f\n", epoch + 1, own, distilled);
    }
    if (s >= 0) s = keel_model_save(m.student, "student.keras");
    if (s < 0) fprintf(stderr, "train_distillation: %s\n", keel_error());
    keel_function_destroy(f);
    keel_strategy_destroy(devices);
    keel_model_destroy(m.student);
    keel_model_destroy(m.teacher);
    return s < 0 || distilled > 0.05;
}
