/* A GAN with two optimizers, as in Keras's guide: a generator turns noise into points, and a
 * discriminator tells them from points of a ring. Each has a step of its own, so the generator's
 * step sees the discriminator as its step has left it. A third function, without an optimizer,
 * measures how far the generated points are from the ring: keel_reduce gives the mean over all
 * rows, on whatever devices they were. */
#include <keel/keel.h>
#include <math.h>
#include <stdio.h>

enum { NOISE = 4, ROWS = 96, STEPS = 1500 };

typedef struct gan {
    keel_model *generator, *discriminator;
} gan;

static keel_status build(keel_model **out, const char *name, int64_t inputs, int64_t outputs)
{
    const keel_arg input[] = { KEEL_ARG_INTS("shape", inputs), { .key = NULL } };
    const keel_arg last[] = { KEEL_ARG_INT("units", outputs), { .key = NULL } };
    keel_status s = keel_model_create(out, name, KEEL_FLOAT32, 3);
    if (s >= 0) s = keel_model_add(*out, "InputLayer", input);
    for (int i = 0; i < 2 && s >= 0; i++) {
        s = keel_model_add(*out, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 32)));
        if (s >= 0)
            s = keel_model_add(*out, "LeakyReLU", KEEL_ARGS(KEEL_ARG_FLOAT("negative_slope", 0.2)));
    }
    return s < 0 ? s : keel_model_add(*out, "Dense", last);
}

static keel_traced generate(keel_trace *t, const gan *m)
{
    keel_traced z = -1, points = -1;
    keel_trace_input(t, "noise", &z);
    keel_trace_model(t, m->generator, true, &z, 1, &points);
    return points;
}

/* The loss if all these points had one label: "ops.OnesLike" or "ops.ZerosLike". */
static keel_scalar judge(keel_trace *t, const gan *m, keel_traced points, const char *label)
{
    keel_traced says = -1, fixed = -1, labels = -1;
    keel_scalar loss = -1;
    keel_trace_model(t, m->discriminator, true, &points, 1, &says);
    keel_trace_call(t, "ops.StopGradient", NULL, NULL, &says, 1, &fixed);
    keel_trace_call(t, label, NULL, NULL, &fixed, 1, &labels);
    keel_trace_loss(
        t, &(keel_named){ "BinaryCrossentropy", KEEL_ARGS(KEEL_ARG_BOOL("from_logits", true)) },
        labels, says, KEEL_UNWEIGHTED, &loss);
    return loss;
}

static keel_status learn(keel_trace *t, const keel_term *terms, int n, keel_model *m, double rate)
{
    const keel_arg args[] = { KEEL_ARG_FLOAT("learning_rate", rate),
                              KEEL_ARG_FLOAT("beta_1", 0.5),
                              { .key = NULL } };
    keel_gradients g = -1;
    keel_trace_gradients(t, terms, n, &(keel_watched){ m }, 1, &g);
    return keel_trace_apply(t, g, &(keel_apply){ { "adam", args } });
}

static keel_status discriminator_step(void *context, keel_trace *t)
{
    const gan *m = context;
    keel_traced real = -1;
    keel_trace_input(t, "real", &real);
    const keel_term terms[] = { { judge(t, m, generate(t, m), "ops.OnesLike"), 0.5 },
                                { judge(t, m, real, "ops.ZerosLike"), 0.5 } };
    return learn(t, terms, 2, m->discriminator, 0.002);
}

static keel_status generator_step(void *context, keel_trace *t)
{
    const gan *m = context;
    const keel_term term = { judge(t, m, generate(t, m), "ops.ZerosLike"), 1 };
    return learn(t, &term, 1, m->generator, 0.001);
}

/* The distance of each point from the middle. */
static keel_status radius_step(void *context, keel_trace *t)
{
    keel_traced p = generate(t, context), r = -1;
    keel_trace_call(t, "ops.Square", NULL, NULL, &p, 1, &p);
    keel_trace_call(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INT("axis", 1)), NULL, &p, 1, &p);
    keel_trace_call(t, "ops.Sqrt", NULL, NULL, &p, 1, &r);
    return keel_trace_return(t, "radius", r);
}

static float next(uint64_t *state) /* -1 .. 1 */
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) / (float)(1 << 23) - 1;
}

static keel_status create(keel_function **out, gan *m, keel_step step)
{
    const keel_data_field inputs[] = { { "noise", KEEL_FLOAT32, { 1, { NOISE } } },
                                       { "real", KEEL_FLOAT32, { 1, { 2 } } } };
    return keel_function_create(out, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = step,
                                                               .context = m, .input = inputs,
                                                               .n_input = 2 });
}

int main(void)
{
    static float noise[ROWS][NOISE], real[ROWS][2];
    const keel_tensor in[] = { { KEEL_FLOAT32, { 2, { ROWS, NOISE } }, noise },
                               { KEEL_FLOAT32, { 2, { ROWS, 2 } }, real } };
    gan m = { NULL, NULL };
    keel_strategy *devices = NULL;
    keel_function *d = NULL, *g = NULL, *radius = NULL;
    keel_tensor mean = { 0 };
    uint64_t state = 7;
    keel_status s = build(&m.generator, "generator", NOISE, 2);
    if (s >= 0) s = build(&m.discriminator, "discriminator", 2, 1);
    if (s >= 0) s = keel_strategy_create(&devices, "cpu:0-1");
    if (s >= 0) s = create(&d, &m, discriminator_step);
    if (s >= 0) s = create(&g, &m, generator_step);
    if (s >= 0) s = create(&radius, &m, radius_step);
    for (int step = 0; step < STEPS && s >= 0; step++) {
        for (int i = 0; i < ROWS; i++) {
            const float angle = 3.14159265f * next(&state);
            real[i][0] = cosf(angle);
            real[i][1] = sinf(angle);
            for (int k = 0; k < NOISE; k++) noise[i][k] = next(&state);
        }
        s = keel_strategy_run(devices, d, in, 2);
        if (s >= 0) s = keel_strategy_run(devices, g, in, 2);
        if (s < 0 || step % 500 != 499) continue;
        keel_tensor_free(&mean);
        s = keel_strategy_run(devices, radius, in, 2);
        if (s >= 0) s = keel_reduce(radius, "radius", KEEL_ROWS_MEAN, &mean);
        if (s >= 0) printf("step %4d  mean radius %.3f\n", step + 1, (double)*(float *)mean.data);
    }
    if (s >= 0) s = keel_model_save(m.generator, "generator.keras");
    if (s < 0) fprintf(stderr, "train_gan: %s\n", keel_error());
    const double off = mean.data ? fabs((double)*(float *)mean.data - 1) : 1;
    keel_tensor_free(&mean);
    keel_function_destroy(d);
    keel_function_destroy(g);
    keel_function_destroy(radius);
    keel_strategy_destroy(devices);
    keel_model_destroy(m.generator);
    keel_model_destroy(m.discriminator);
    return s < 0 || off > 0.5;
}
