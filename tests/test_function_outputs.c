/* Steps that call a part of a model: what leads to outputs that are not wanted is not computed. And
 * steps that make a call again, for a second gradient, as if there had been one call. */
#include "base/memory.h"
#include "must.h"
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { ROWS = 7, NUMBERS = 3 };

/* Two ways: "a" through a BatchNormalization, several times, "b" through a Dense; and their sum. */
static keel_model *two_ways(int times)
{
    keel_model *m;
    keel_symbol a, b, sum[2], out[3];
    must(keel_model_create(&m, "ways", KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(NUMBERS), NULL, &a));
    must(keel_model_input(m, KEEL_DIMS(NUMBERS), NULL, &b));
    a = must_call(m, "BatchNormalization", KEEL_ARGS(KEEL_ARG_STR("name", "norm")), a);
    for (int i = 1; i < times; i++) must(keel_model_call_again(m, "norm", &a, 1, &a));
    sum[0] = out[0] = a;
    sum[1] = out[1] = must_call(
        m, "Dense", KEEL_ARGS(KEEL_ARG_STR("name", "line"), KEEL_ARG_INT("units", NUMBERS)), b);
    must(keel_model_call(m, "Add", NULL, sum, 2, &out[2]));
    must(keel_model_outputs(m, out, 3));
    return m;
}

typedef struct part {
    keel_model *model;
    keel_step step; /* NULL: `step` */
    bool wanted[3], given[2];
} part;

static keel_status step(void *context, keel_trace *t)
{
    const part *p = context;
    keel_traced in[2] = { KEEL_UNUSED, KEEL_UNUSED }, out = -1;
    keel_scalar loss = -1;
    keel_gradients g = -1;
    if (p->given[0]) keel_trace_input(t, "a", &in[0]);
    if (p->given[1]) keel_trace_input(t, "b", &in[1]);
    keel_trace_outputs(t, p->model, KEEL_TRAINING, in, 2, p->wanted, &out);
    for (int i = 0; i < 3; i++)
        if (p->wanted[i]) keel_trace_mean(t, out + i, KEEL_UNWEIGHTED, &loss);
    keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, &(keel_watched){ p->model }, 1, &g);
    return keel_trace_apply(t, g, &(keel_apply){ { "sgd" } });
}

static keel_status run(part *p)
{
    static float rows[2][ROWS * NUMBERS];
    const keel_data_field inputs[] = { { "a", KEEL_FLOAT32, { 1, { NUMBERS } } },
                                       { "b", KEEL_FLOAT32, { 1, { NUMBERS } } } };
    const keel_tensor in[] = { { KEEL_FLOAT32, { 2, { ROWS, NUMBERS } }, rows[0] },
                               { KEEL_FLOAT32, { 2, { ROWS, NUMBERS } }, rows[1] } };
    for (int i = 0; i < ROWS * NUMBERS; i++) rows[0][i] = rows[1][i] = (float)(i * 37 % 16) / 8 - 1;
    keel_function *f;
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(keel_function_create(
        &f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = p->step ? p->step : step,
                                      .context = p, .input = inputs, .n_input = 2 }));
    const keel_status status = keel_strategy_run(s, f, in, 2);
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    return status;
}

/* How far a weight has moved. */
static float distance(const keel_model *before, const keel_model *after, const char *weight)
{
    keel_tensor a, b;
    float most = 0;
    must(keel_model_get_weight(before, weight, &a));
    must(keel_model_get_weight(after, weight, &b));
    int64_t n = 1;
    for (int k = 0; k < a.shape.rank; k++) n *= a.shape.dim[k];
    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(((float *)a.data)[i] - ((float *)b.data)[i]));
    keel_tensor_free(&a);
    keel_tensor_free(&b);
    return most;
}

static bool is_moved(const keel_model *before, const keel_model *after, const char *weight)
{
    return distance(before, after, weight) > 0;
}

static const struct {
    const char *name;
    bool wanted[3], given[2];
    bool norm, line;  /* what moves: statistics and beta of the one, bias of the other */
    const char *text; /* of the refusal; NULL: none */
} cases[] = {
    { "one way, without the other's input", { true }, { true }, true, false, NULL },
    { "the other way", { false, true }, { false, true }, false, true, NULL },
    { "one way, with all inputs", { false, true }, { true, true }, false, true, NULL },
    { "what both lead to", { false, false, true }, { true, true }, true, true, NULL },
    { "no output",
      { false },
      { true, true },
      false,
      false,
      "no output of the model 'ways' is wanted" },
    { "an input that is needed",
      { false, false, true },
      { true },
      false,
      false,
      "input 1 is needed for an output that is wanted" },
};

static void what_leads_to_no_wanted_output_is_not_computed(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_model *const before = two_ways(1);
        part p = { .model = two_ways(1) };
        memcpy(p.wanted, cases[i].wanted, sizeof p.wanted);
        memcpy(p.given, cases[i].given, sizeof p.given);
        const keel_status s = run(&p);
        if (cases[i].text ? s != KEEL_EARG || !strstr(keel_error(), cases[i].text) : s < 0)
            fail_msg("%s: %s '%s'", cases[i].name, keel_status_name(s), keel_error());
        const bool norm = is_moved(before, p.model, "norm/moving_mean");
        if (norm != cases[i].norm || is_moved(before, p.model, "norm/beta") != cases[i].norm)
            fail_msg("%s: BatchNormalization %s", cases[i].name, norm ? "moves" : "does not move");
        if (is_moved(before, p.model, "line/bias") != cases[i].line)
            fail_msg("%s: Dense", cases[i].name);
        keel_model_destroy(before);
        keel_model_destroy(p.model);
    }
}

/* ---- calls that are made again --------------------------------------------------------------- */

static keel_model *begin_model(const keel_shape *row, keel_symbol *x)
{
    keel_model *m;
    must(keel_model_create(&m, "net", KEEL_FLOAT32, 1));
    must(keel_model_input(m, row, NULL, x));
    return m;
}

static keel_model *end_model(keel_model *m, keel_symbol y)
{
    must(keel_model_outputs(m, &y, 1));
    return m;
}

static const keel_arg line[] = { KEEL_ARG_STR("name", "line"), KEEL_ARG_INT("units", 3), { 0 } };
static const keel_arg norm[] = { KEEL_ARG_STR("name", "norm"),
                                 KEEL_ARG_FLOAT("momentum", 0.5),
                                 { 0 } };

static keel_model *plain(void)
{
    keel_symbol x;
    keel_model *m = begin_model(KEEL_DIMS(4, 3), &x);
    x = must_call(m, "Dense", line, x);
    return end_model(m, must_call(m, "BatchNormalization", norm, x));
}

static keel_model *with_convolution(void)
{
    keel_symbol x;
    keel_model *m = begin_model(KEEL_DIMS(2, 2, 3), &x);
    x = must_call(m, "Conv2D",
                  KEEL_ARGS(KEEL_ARG_STR("name", "line"), KEEL_ARG_INT("filters", 3),
                            KEEL_ARG_INTS("kernel_size", 2, 2), KEEL_ARG_STR("padding", "same")),
                  x);
    x = must_call(m, "BatchNormalization", norm, x);
    return end_model(m, must_call(m, "ReLU", NULL, x));
}

static keel_model *with_mask(void)
{
    keel_symbol x;
    keel_model *m = begin_model(KEEL_DIMS(4, 3), &x);
    x = must_call(m, "Masking", KEEL_ARGS(KEEL_ARG_FLOAT("mask_value", 0)), x);
    x = must_call(m, "Dense", line, x);
    return end_model(m, must_call(m, "BatchNormalization", norm, x));
}

static keel_model *with_renorm(void)
{
    keel_symbol x;
    keel_model *m = begin_model(KEEL_DIMS(4, 3), &x);
    x = must_call(m, "Dense", line, x);
    return end_model(
        m,
        must_call(m, "BatchNormalization",
                  KEEL_ARGS(KEEL_ARG_STR("name", "norm"), KEEL_ARG_FLOAT("momentum", 0.5),
                            KEEL_ARG_FLOAT("renorm_momentum", 0.5), KEEL_ARG_BOOL("renorm", true)),
                  x));
}

static keel_model *with_dropout(void)
{
    keel_symbol x;
    keel_model *m = begin_model(KEEL_DIMS(4, 3), &x);
    x = must_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.5)), x);
    x = must_call(m, "Dense", line, x);
    x = must_call(m, "BatchNormalization", norm, x);
    return end_model(m, must_call(m, "GaussianNoise", KEEL_ARGS(KEEL_ARG_FLOAT("stddev", 1)), x));
}

static keel_model *with_held(void)
{
    keel_symbol x;
    keel_model *m = begin_model(KEEL_DIMS(4, 3), &x);
    x = must_call(m, "Dense", line, x);
    return end_model(
        m, must_call(m, "TimeDistributed",
                     KEEL_ARGS(KEEL_ARG_STR("name", "norm"),
                               KEEL_ARG_JSON("layer", "{\"class_name\": \"BatchNormalization\", "
                                                      "\"config\": {\"momentum\": 0.5}}")),
                     x));
}

typedef struct again {
    keel_model *model;
    keel_calling second; /* KEEL_INFERENCE: there is no second call */
} again;

/* The weights of a layer, or all others. */
static int watch(keel_model *m, const char *layer, bool are, keel_watched *out)
{
    int n = 0;
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        const char *name = keel_model_weight_name(m, i);
        const bool is = !strncmp(name, layer, strlen(layer));
        if (is == are && !strstr(name, "moving") && !strstr(name, "renorm"))
            out[n++] = (keel_watched){ m, name };
    }
    return n;
}

/* Of one call all weights move; of two those of the layer "line" by the first, by the second all
 * others. */
static keel_status step_again(void *context, keel_trace *t)
{
    const again *a = context;
    const bool two = a->second != KEEL_INFERENCE;
    keel_traced x = -1;
    keel_trace_input(t, "x", &x);
    for (int k = 0; k <= two; k++) {
        keel_traced y = -1, z = -1;
        keel_scalar loss = -1;
        keel_gradients g = -1;
        keel_watched w[8];
        const int n = two ? watch(a->model, "line/", k == 0, w) : 1;
        if (!two) w[0] = (keel_watched){ a->model, NULL };
        keel_trace_outputs(t, a->model, k ? a->second : KEEL_TRAINING, &x, 1, &(bool){ true }, &y);
        keel_trace_call(t, "ops.Exp", NULL, NULL, &y, 1, &z);
        keel_trace_mean(t, z, KEEL_UNWEIGHTED, &loss);
        keel_trace_gradients(t, &(keel_term){ loss, 1 }, 1, w, n, &g);
        keel_trace_apply(t, g, &(keel_apply){ { "sgd" } });
        keel_trace_return_scalar(t, k ? "second" : "first", loss);
    }
    return KEEL_OK;
}

static const keel_tensor *twelve_numbers(const keel_shape *row, float *x, keel_tensor *out)
{
    for (int i = 0; i < ROWS * 12; i++) x[i] = i % 12 < 3 ? 0 : (float)(i * 37 % 16) / 8 - 1;
    *out = (keel_tensor){ KEEL_FLOAT32, { row->rank + 1, { ROWS } }, x };
    for (int k = 0; k < row->rank; k++) out->shape.dim[k + 1] = row->dim[k];
    return out;
}

/* Makes `steps` steps, from the weights that the model has. */
static void run_again(again *a, const char *devices, const keel_shape *row, int steps,
                      double loss[2])
{
    float x[ROWS * 12];
    keel_tensor in;
    const keel_data_field input = { "x", KEEL_FLOAT32, *row };
    keel_function *f;
    keel_strategy *s;
    must(keel_strategy_create(&s, devices));
    must(keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .context = a,
                                                            .step = step_again, .input = &input,
                                                            .n_input = 1 }));
    for (int i = 0; i < steps; i++) must(keel_strategy_run(s, f, twelve_numbers(row, x, &in), 1));
    must(keel_function_scalar(f, "first", &loss[0]));
    loss[1] = loss[0];
    if (a->second != KEEL_INFERENCE) must(keel_function_scalar(f, "second", &loss[1]));
    keel_function_destroy(f);
    keel_strategy_destroy(s);
}

static const struct {
    const char *name;
    keel_model *(*make)(void);
    keel_shape row;
    bool alike; /* a second call in training has the loss of the first, */
    bool alone; /* and the layer is called once by the model: statistics move by the same again */
} nets[] = {
    { "BatchNormalization", plain, { 2, { 4, 3 } }, true, true },
    { "behind a convolution, with ReLU", with_convolution, { 3, { 2, 2, 3 } }, true, true },
    { "by a mask", with_mask, { 2, { 4, 3 } }, true, true },
    { "with renorm", with_renorm, { 2, { 4, 3 } }, false, true },
    { "between dropout and noise", with_dropout, { 2, { 4, 3 } }, false, false },
    { "held by another layer", with_held, { 2, { 4, 3 } }, true, false },
};

static void is_as_of_one_call(size_t i, const char *devices)
{
    enum { STEPS = 3 };
    double one[2], two[2];
    again a = { nets[i].make(), KEEL_INFERENCE }, b = { nets[i].make(), KEEL_TRAINING_AGAIN };
    run_again(&a, devices, &nets[i].row, STEPS, one);
    run_again(&b, devices, &nets[i].row, STEPS, two);
    if (fabs(one[0] - two[0]) > 1e-6 || two[0] != two[1])
        fail_msg("%s: losses %.9g, and %.9g again, not %.9g", nets[i].name, two[0], two[1], one[0]);
    for (int w = 0; w < keel_model_weight_count(a.model); w++)
        if (distance(a.model, b.model, keel_model_weight_name(a.model, w)) > 1e-6f)
            fail_msg("%s on %s: other %s", nets[i].name, devices,
                     keel_model_weight_name(a.model, w));
    keel_model_destroy(a.model);
    keel_model_destroy(b.model);
}

static void a_call_that_is_made_again_has_what_one_call_has(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        is_as_of_one_call(i, "cpu:0");
        is_as_of_one_call(i, "cpu:0-2");
    }
}

static const char *mean_of(const keel_model *m)
{
    for (int w = 0; w < keel_model_weight_count(m); w++)
        if (strstr(keel_model_weight_name(m, w), "moving_mean"))
            return keel_model_weight_name(m, w);
    return NULL;
}

/* With a momentum of a half and zeros at first, means that moved twice are one and a half times
 * those that moved once. */
static void a_second_call_in_training_moves_statistics_a_second_time(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        double one[2], two[2];
        keel_tensor once, twice;
        again a = { nets[i].make(), KEEL_TRAINING_AGAIN }, b = { nets[i].make(), KEEL_TRAINING };
        run_again(&a, "cpu:0-1", &nets[i].row, 1, one);
        run_again(&b, "cpu:0-1", &nets[i].row, 1, two);
        if ((two[0] == two[1]) != nets[i].alike)
            fail_msg("%s: losses %.9g and %.9g", nets[i].name, two[0], two[1]);
        must(keel_model_get_weight(a.model, mean_of(a.model), &once));
        must(keel_model_get_weight(b.model, mean_of(b.model), &twice));
        for (int k = 0; k < 3; k++) {
            const float x = ((float *)once.data)[k], y = ((float *)twice.data)[k];
            if (x == 0 || y == x || (nets[i].alone && fabsf(y - 1.5f * x) > 1e-6f))
                fail_msg("%s: %g once, %g twice", nets[i].name, (double)x, (double)y);
        }
        keel_tensor_free(&once);
        keel_tensor_free(&twice);
        keel_model_destroy(a.model);
        keel_model_destroy(b.model);
    }
}

/* A part of the model first, another part again: each layer moves what is its own, once. */
static keel_status by_parts(void *context, keel_trace *t)
{
    static const bool first[] = { false, true, false }, second[] = { true, false, false };
    const part *p = context;
    keel_traced in[2] = { -1, -1 }, out = -1;
    keel_trace_input(t, "a", &in[0]);
    keel_trace_input(t, "b", &in[1]);
    keel_trace_outputs(t, p->model, KEEL_TRAINING, in, 2, first, &out);
    keel_trace_return(t, "b", out + 1);
    for (int k = 0; k < 2; k++) {
        keel_trace_outputs(t, p->model, KEEL_TRAINING_AGAIN, in, 2, second, &out);
        keel_trace_return(t, k ? "again" : "a", out);
    }
    return KEEL_OK;
}

static void what_the_first_call_had_no_part_in_moves_once(void **unused)
{
    (void)unused;
    keel_tensor once, more;
    part one = { .model = two_ways(2), .wanted = { true }, .given = { true } };
    part p = { .model = two_ways(2), .step = by_parts };
    must(run(&one));
    must(run(&p));
    must(keel_model_get_weight(one.model, "norm/moving_mean", &once));
    must(keel_model_get_weight(p.model, "norm/moving_mean", &more));
    assert_memory_equal(once.data, more.data, NUMBERS * sizeof(float));
    keel_tensor_free(&once);
    keel_tensor_free(&more);
    keel_model_destroy(one.model);
    keel_model_destroy(p.model);
}

/* ---- which call it is ------------------------------------------------------------------------ */

static keel_model *drawing(void)
{
    keel_symbol x;
    keel_model *m = begin_model(KEEL_DIMS(NUMBERS), &x);
    return end_model(m, must_call(m, "GaussianNoise", KEEL_ARGS(KEEL_ARG_FLOAT("stddev", 1)), x));
}

typedef struct pair {
    keel_model *first, *second; /* the second may be missing */
} pair;

static keel_traced call(keel_trace *t, keel_model *m, keel_calling how, keel_traced x)
{
    keel_traced y = -1;
    keel_trace_outputs(t, m, how, &x, 1, &(bool){ true }, &y);
    return y;
}

static void show(keel_trace *t, const char *name, keel_traced y)
{
    keel_scalar mean = -1;
    keel_trace_mean(t, y, KEEL_UNWEIGHTED, &mean);
    keel_trace_return_scalar(t, name, mean);
}

/* Two models that draw, one on the other: the second is called on two values. */
static keel_status one_on_the_other(void *context, keel_trace *t)
{
    const pair *p = context;
    keel_traced x = -1;
    keel_trace_input(t, "x", &x);
    const keel_traced y = call(t, p->first, KEEL_TRAINING, x);
    show(t, "made", call(t, p->second, KEEL_TRAINING, y));
    show(t, "real", call(t, p->second, KEEL_TRAINING, x));
    const keel_traced z = call(t, p->first, KEEL_TRAINING_AGAIN, x);
    show(t, "made again", call(t, p->second, KEEL_TRAINING_AGAIN, z));
    keel_traced still = -1;
    keel_trace_call(t, "ops.StopGradient", NULL, NULL, &z, 1, &still);
    show(t, "made again, still", call(t, p->second, KEEL_TRAINING_AGAIN, still));
    show(t, "real again", call(t, p->second, KEEL_TRAINING_AGAIN, x));
    return KEEL_OK;
}

static keel_status run_pair(const pair *p, keel_step step_of, double *out, const char *const *names,
                            int n)
{
    static float x[ROWS * NUMBERS];
    const keel_data_field input = { "x", KEEL_FLOAT32, { 1, { NUMBERS } } };
    const keel_tensor in = { KEEL_FLOAT32, { 2, { ROWS, NUMBERS } }, x };
    keel_function *f;
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = step_of,
                                                            .context = (void *)p, .input = &input,
                                                            .n_input = 1 }));
    const keel_status status = keel_strategy_run(s, f, &in, 1);
    for (int i = 0; i < n && status >= 0; i++) must(keel_function_scalar(f, names[i], &out[i]));
    keel_function_destroy(f);
    keel_strategy_destroy(s);
    return status;
}

static void the_call_of_the_same_values_is_made_again(void **unused)
{
    (void)unused;
    static const char *const names[] = { "made", "real", "made again", "real again",
                                         "made again, still" };
    double mean[5];
    const pair p = { drawing(), drawing() };
    must(run_pair(&p, one_on_the_other, mean, names, 5));
    assert_true(mean[4] == mean[0]);
    assert_true(mean[0] == mean[2]);
    assert_true(mean[1] == mean[3]);
    assert_true(mean[0] != mean[1]);
    keel_model_destroy(p.first);
    keel_model_destroy(p.second);
}

static keel_status nothing_before(void *context, keel_trace *t)
{
    const pair *p = context;
    keel_traced x = -1;
    keel_trace_input(t, "x", &x);
    call(t, p->first, KEEL_INFERENCE, x);
    return keel_trace_return(t, "y", call(t, p->first, KEEL_TRAINING_AGAIN, x));
}

static keel_status another_value(void *context, keel_trace *t)
{
    const pair *p = context;
    keel_traced x = -1, y = -1, z = -1;
    keel_trace_input(t, "x", &x);
    keel_trace_call(t, "ops.Square", NULL, NULL, &x, 1, &y);
    keel_trace_call(t, "ops.Exp", NULL, NULL, &x, 1, &z);
    call(t, p->first, KEEL_TRAINING, x);
    call(t, p->first, KEEL_TRAINING, y);
    return keel_trace_return(t, "y", call(t, p->first, KEEL_TRAINING_AGAIN, z));
}

static keel_status once_more(void *context, keel_trace *t)
{
    const pair *p = context;
    keel_traced x = -1;
    keel_trace_input(t, "x", &x);
    keel_trace_return(t, "x", call(t, p->first, KEEL_TRAINING, x));
    return keel_trace_return(t, "y", call(t, p->first, KEEL_TRAINING_AGAIN, x));
}

static keel_status no_way(void *context, keel_trace *t)
{
    const pair *p = context;
    keel_traced x = -1;
    keel_trace_input(t, "x", &x);
    return keel_trace_return(t, "y", call(t, p->first, (keel_calling)3, x));
}

static keel_model *divided(void)
{
    keel_symbol x;
    keel_model *m = begin_model(KEEL_DIMS(NUMBERS), &x);
    return end_model(m, must_call(m, "SpectralNormalization",
                                  KEEL_ARGS(KEEL_ARG_STR("name", "divided"),
                                            KEEL_ARG_JSON("layer", "{\"class_name\": \"Dense\", "
                                                                   "\"config\": {\"units\": 2}}")),
                                  x));
}

/* A layer with renorm that is called twice by one call of the model. */
static keel_model *twice_renorm(void)
{
    keel_symbol x, y;
    keel_model *m = begin_model(KEEL_DIMS(NUMBERS), &x);
    y = must_call(m, "BatchNormalization",
                  KEEL_ARGS(KEEL_ARG_STR("name", "norm"), KEEL_ARG_BOOL("renorm", true)), x);
    must(keel_model_call_again(m, "norm", &y, 1, &y));
    return end_model(m, y);
}

static void calls_that_cannot_be_made_again_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        keel_model *(*make)(void);
        keel_step step;
        keel_status status;
        const char *text;
    } bad[] = {
        { "no call before", drawing, nothing_before, KEEL_EARG,
          "has not called the model 'net' in training before" },
        { "two calls that draw", drawing, another_value, KEEL_EUNSUP,
          "the model 'net', which draws numbers, several times" },
        { "a kernel that is divided", divided, once_more, KEEL_EUNSUP, "layer 'divided'" },
        { "statistics that two calls moved", twice_renorm, once_more, KEEL_EUNSUP,
          "layer 'norm': a call that is made again" },
        { "no way to call", drawing, no_way, KEEL_EARG, "no way to call a model: 3" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const pair p = { .first = bad[i].make() };
        const keel_status s = run_pair(&p, bad[i].step, NULL, NULL, 0);
        if (s != bad[i].status || !strstr(keel_error(), bad[i].text))
            fail_msg("%s: %s '%s'", bad[i].name, keel_status_name(s), keel_error());
        keel_model_destroy(p.first);
    }
}

static void each_failing_allocation_of_a_call_again_is_an_error_without_a_leak(void **unused)
{
    (void)unused;
    static float x[ROWS * NUMBERS];
    const keel_data_field input = { "x", KEEL_FLOAT32, { 1, { NUMBERS } } };
    const keel_tensor in = { KEEL_FLOAT32, { 2, { ROWS, NUMBERS } }, x };
    const pair p = { drawing(), drawing() };
    const keel_function_options o = { KEEL_FUNCTION_OPTIONS, .step = one_on_the_other,
                                      .context = (void *)&p, .input = &input, .n_input = 1 };
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0"));
    const int64_t live = keel_memory_live();
    keel_status st = KEEL_ENOMEM;
    for (int64_t at = 0; st < 0; at++) {
        keel_function *f = NULL;
        keel_memory_fail_at(at);
        st = keel_function_create(&f, &o);
        if (st >= 0) st = keel_strategy_run(s, f, &in, 1);
        keel_memory_fail_at(-1);
        if (st < 0 && st != KEEL_ENOMEM) fail_msg("allocation %d: %s", (int)at, keel_error());
        keel_function_destroy(f);
        assert_int_equal(keel_memory_live(), live);
        assert_true(at < 5000);
    }
    keel_strategy_destroy(s);
    keel_model_destroy(p.first);
    keel_model_destroy(p.second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leads_to_no_wanted_output_is_not_computed),
        cmocka_unit_test(a_call_that_is_made_again_has_what_one_call_has),
        cmocka_unit_test(a_second_call_in_training_moves_statistics_a_second_time),
        cmocka_unit_test(what_the_first_call_had_no_part_in_moves_once),
        cmocka_unit_test(the_call_of_the_same_values_is_made_again),
        cmocka_unit_test(calls_that_cannot_be_made_again_are_refused),
        cmocka_unit_test(each_failing_allocation_of_a_call_again_is_an_error_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
