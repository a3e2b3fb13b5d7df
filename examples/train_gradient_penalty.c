/* A WGAN with a gradient penalty, as in Keras's guide "WGAN-GP": the loss of the critic has the
 * size of the critic's own gradient in it, so its gradient is a second derivative. The critic runs
 * three times for each step of the generator. All learn to draw points of a ring. */
#include <keel/keel.h>
#include <math.h>
#include <stdio.h>

enum { NOISE = 4, ROWS = 96, STEPS = 1500, CRITIC_STEPS = 3 };

typedef struct gan {
    keel_model *generator, *critic;
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

static keel_traced input(keel_trace *t, const char *name)
{
    keel_traced x = -1;
    keel_trace_input(t, name, &x);
    return x;
}

static keel_traced call(keel_trace *t, keel_model *m, keel_traced x)
{
    keel_traced y = -1;
    keel_trace_model(t, m, true, &x, 1, &y);
    return y;
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

static keel_scalar mean(keel_trace *t, keel_traced x)
{
    keel_scalar s = -1;
    keel_trace_mean(t, x, KEEL_UNWEIGHTED, &s);
    return s;
}

static keel_status learn(keel_trace *t, const keel_term *terms, int n, keel_model *m)
{
    keel_gradients g = -1;
    keel_trace_gradients(t, terms, n, &(keel_watched){ m }, 1, &g);
    return keel_trace_apply(
        t, g,
        &(keel_apply){ { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.002),
                                           KEEL_ARG_FLOAT("beta_1", 0.5)) } });
}

/* mean((|gradient of the critic at x| - 1)^2) */
static keel_scalar penalty(keel_trace *t, const gan *m, keel_traced x)
{
    keel_traced slope = -1, sum = -1;
    keel_trace_gradient_of(t, call(t, m->critic, x), x, &slope);
    const keel_traced square = op(t, "ops.Square", slope);
    keel_trace_call(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INT("axis", 1)), NULL, &square, 1, &sum);
    const keel_traced norm = op(t, "ops.Sqrt", with(t, "ops.Add", sum, 1e-12));
    return mean(t, op(t, "ops.Square", with(t, "ops.Subtract", norm, 1)));
}

static keel_status critic_step(void *context, keel_trace *t)
{
    const gan *m = context;
    const keel_traced real = input(t, "real"), mix = input(t, "mix");
    const keel_traced fake = call(t, m->generator, input(t, "noise"));
    const keel_traced between =
        both(t, "ops.Add", fake, both(t, "ops.Multiply", mix, both(t, "ops.Subtract", real, fake)));
    const keel_scalar off = penalty(t, m, between);
    const keel_term terms[] = { { mean(t, call(t, m->critic, fake)), 1 },
                                { mean(t, call(t, m->critic, real)), -1 },
                                { off, 10 } };
    keel_trace_return_scalar(t, "penalty", off);
    return learn(t, terms, 3, m->critic);
}

static keel_status generator_step(void *context, keel_trace *t)
{
    const gan *m = context;
    const keel_traced fake = call(t, m->generator, input(t, "noise"));
    const keel_term term = { mean(t, call(t, m->critic, fake)), -1 };
    keel_traced sum = -1;
    const keel_traced square = op(t, "ops.Square", fake);
    keel_trace_call(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INT("axis", 1)), NULL, &square, 1, &sum);
    keel_trace_return(t, "radius", op(t, "ops.Sqrt", sum));
    return learn(t, &term, 1, m->generator);
}

static float next(uint64_t *state) /* -1 .. 1 */
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) / (float)(1 << 23) - 1;
}

static float noise[ROWS][NOISE], real[ROWS][2], mix[ROWS][1];

static void draw(uint64_t *state)
{
    for (int i = 0; i < ROWS; i++) {
        const float angle = 3.14159265f * next(state);
        real[i][0] = cosf(angle);
        real[i][1] = sinf(angle);
        mix[i][0] = (next(state) + 1) / 2;
        for (int k = 0; k < NOISE; k++) noise[i][k] = next(state);
    }
}

static keel_status create(keel_function **out, gan *m, keel_step step)
{
    const keel_data_field inputs[] = { { "noise", KEEL_FLOAT32, { 1, { NOISE } } },
                                       { "real", KEEL_FLOAT32, { 1, { 2 } } },
                                       { "mix", KEEL_FLOAT32, { 1, { 1 } } } };
    return keel_function_create(out, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = step,
                                                               .context = m, .input = inputs,
                                                               .n_input = 3 });
}

int main(void)
{
    const keel_tensor in[] = { { KEEL_FLOAT32, { 2, { ROWS, NOISE } }, noise },
                               { KEEL_FLOAT32, { 2, { ROWS, 2 } }, real },
                               { KEEL_FLOAT32, { 2, { ROWS, 1 } }, mix } };
    gan m = { NULL, NULL };
    keel_strategy *devices = NULL;
    keel_function *critic = NULL, *generator = NULL;
    keel_tensor radius = { 0 };
    uint64_t state = 7;
    double off = 0;
    keel_status s = build(&m.generator, "generator", NOISE, 2);
    if (s >= 0) s = build(&m.critic, "critic", 2, 1);
    if (s >= 0) s = keel_strategy_create(&devices, "cpu:0-1");
    if (s >= 0) s = create(&critic, &m, critic_step);
    if (s >= 0) s = create(&generator, &m, generator_step);
    for (int step = 0; step < STEPS && s >= 0; step++) {
        for (int k = 0; k < CRITIC_STEPS && s >= 0; k++) {
            draw(&state);
            s = keel_strategy_run(devices, critic, in, 3);
        }
        if (s >= 0) s = keel_strategy_run(devices, generator, in, 3);
        if (s < 0 || step % 500 != 499) continue;
        keel_tensor_free(&radius);
        s = keel_function_scalar(critic, "penalty", &off);
        if (s >= 0) s = keel_reduce(generator, "radius", KEEL_ROWS_MEAN, &radius);
        if (s >= 0)
            printf("step %4d  penalty %.4f  mean radius %.3f\n", step + 1, off,
                   (double)*(float *)radius.data);
    }
    if (s < 0) fprintf(stderr, "train_gradient_penalty: %s\n", keel_error());
    keel_tensor_free(&radius);
    keel_function_destroy(critic);
    keel_function_destroy(generator);
    keel_strategy_destroy(devices);
    keel_model_destroy(m.generator);
    keel_model_destroy(m.critic);
    return s < 0 || off > 0.3;
}
