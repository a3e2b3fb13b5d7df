/* Functional models as a list of layer calls: built as a model, and printed as Keras would write
 * it. Numbers by chance. */
#ifndef TESTS_RANDOM_STEPS_H
#define TESTS_RANDOM_STEPS_H
#include <stdio.h>
#include <string.h>
#include "activations/activation.h"
#include "keel/keel.h"
#include "model/model.h"

enum { STEPS_MAX = 48, INS_MAX = 4, OUTS_MAX = 3, ARGS_MAX = 8 };
enum { IMAGE_MAX = 9, CHANNELS_MAX = 5, ROW_MAX = 420 };

/* One call of a layer, or an input of the model. */
typedef struct step {
    const char *layer; /* Keras's class */
    int self;          /* the step that called this layer first: itself, or an earlier one */
    int n_in, in[INS_MAX];
    int n_arg;
    keel_arg arg[ARGS_MAX]; /* their texts are constants */
    keel_shape shape;       /* of a row of what it gives */
    int ids;                /* an input of whole numbers below it; 0: of real ones */
} step;

typedef enum loss_kind { LOSS_MSE, LOSS_SPARSE, LOSS_BINARY, LOSS_KINDS } loss_kind;

typedef struct random_graph {
    uint64_t seed;
    int n;
    step step[STEPS_MAX];
    int n_out, out[OUTS_MAX]; /* steps */
    loss_kind loss[OUTS_MAX];
    double loss_weight[OUTS_MAX];
    bool weighted; /* rows have weights */
    int64_t rows, batch;
} random_graph;

/* ---- numbers by chance: xorshift64* -----------------------------------------------------------
 */

static uint64_t chance_state;

static void chance_seed(uint64_t seed)
{
    chance_state = (seed + 1) * 0x9e3779b97f4a7c15u;
}

static int chance(int n) /* 0 .. n - 1 */
{
    chance_state ^= chance_state >> 12;
    chance_state ^= chance_state << 25;
    chance_state ^= chance_state >> 27;
    return (int)((chance_state * 0x2545f4914f6cdd1du >> 33) % (uint64_t)n);
}

static bool percent(int p)
{
    return chance(100) < p;
}

static double chance_real(void) /* -1 .. 1, a multiple of 2^-20 */
{
    return (double)(chance(1 << 21) - (1 << 20)) / (1 << 20);
}

/* ---- building ---------------------------------------------------------------------------------
 */

static bool is_input(const step *s)
{
    return s->n_in == 0;
}

/* Which steps lead to an output. */
static void reached_steps(const random_graph *g, bool reached[STEPS_MAX])
{
    memset(reached, 0, STEPS_MAX * sizeof *reached);
    for (int k = 0; k < g->n_out; k++) reached[g->out[k]] = true;
    for (int i = g->n - 1; i > 0; i--)
        for (int k = 0; k < g->step[i].n_in && reached[i]; k++) reached[g->step[i].in[k]] = true;
}

static keel_status build_step(keel_model *m, random_graph *g, int i, keel_symbol *symbol,
                              bool *made)
{
    step *s = &g->step[i];
    keel_symbol in[INS_MAX];
    keel_arg args[ARGS_MAX + 2] = { { 0 } };
    char name[16];
    snprintf(name, sizeof name, "s%d", s->self);
    for (int k = 0; k < s->n_in; k++) in[k] = symbol[s->in[k]];
    for (int k = 0; k < s->n_arg; k++) args[k] = s->arg[k];
    args[s->n_arg] = (keel_arg)KEEL_ARG_STR("name", name);
    if (is_input(s))
        KEEL_TRY(keel_model_input(m, &s->shape, NULL, &symbol[i]));
    else if (made[s->self])
        KEEL_TRY(keel_model_call_again(m, name, in, s->n_in, &symbol[i]));
    else
        KEEL_TRY(keel_model_call(m, s->layer, args, in, s->n_in, &symbol[i]));
    made[s->self] = true;
    s->shape = keel_model_spec(m, symbol[i])->shape;
    return KEEL_OK;
}

static const char *const loss_names[] = { "mse", "sparse_categorical_crossentropy",
                                          "binary_crossentropy" };

/* The model, compiled for SGD without momentum. */
static keel_status build_model(random_graph *g, keel_dtype dtype, keel_model **out)
{
    keel_symbol symbol[STEPS_MAX], outputs[OUTS_MAX];
    bool reached[STEPS_MAX], made[STEPS_MAX] = { false };
    keel_model *m;
    keel_compile how = { KEEL_COMPILE, .optimizer = { "SGD", NULL } };
    keel_status s = keel_model_create(&m, NULL, dtype, g->seed);
    if (s < 0) return s;
    reached_steps(g, reached);
    for (int i = 0; i < g->n && s >= 0; i++)
        if (reached[i]) s = build_step(m, g, i, symbol, made);
    for (int k = 0; k < g->n_out && s >= 0; k++) {
        outputs[k] = symbol[g->out[k]];
        how.loss[k].name = loss_names[g->loss[k]];
        how.loss[k].output = k;
        how.loss_weights[k] = g->loss_weight[k];
    }
    if (s >= 0) s = keel_model_outputs(m, outputs, g->n_out);
    if (s >= 0) s = keel_model_compile(m, &how);
    if (s < 0)
        keel_model_destroy(m);
    else
        *out = m;
    return s;
}

/* ---- printing ---------------------------------------------------------------------------------
 */

static void print_arg(const keel_arg *a)
{
    printf("%s=", a->key);
    switch (a->kind) {
    case KEEL_ARG_IS_INT:
        printf("%lld", (long long)a->number);
        break;
    case KEEL_ARG_IS_FLOAT:
        printf("%.17g", a->real);
        break;
    case KEEL_ARG_IS_BOOL:
        printf("%s", a->number ? "True" : "False");
        break;
    case KEEL_ARG_IS_STR:
        printf("'%s'", a->text);
        break;
    case KEEL_ARG_IS_JSON:
        printf("%s", a->text);
        break;
    case KEEL_ARG_IS_INTS:
        for (int64_t i = 0; i < a->number; i++)
            printf("%s%lld", i ? ", " : "(", (long long)a->ints[i]);
        printf("%s)", a->number == 1 ? "," : "");
        break;
    }
}

/* As a user of Keras would write it. */
static void print_graph(const random_graph *g)
{
    bool reached[STEPS_MAX], made[STEPS_MAX] = { false };
    reached_steps(g, reached);
    for (int i = 0; i < g->n; i++) {
        const step *s = &g->step[i];
        char shape[96];
        if (!reached[i]) continue;
        keel_shape_text(shape, &s->shape);
        printf("x%d = ", i);
        if (is_input(s))
            printf("Input(%s", shape);
        else if (made[s->self])
            printf("layer%d(", s->self);
        else
            printf("(layer%d := %s(", i, s->layer);
        for (int k = 0; k < s->n_arg && !made[s->self]; k++) {
            if (k) printf(", ");
            print_arg(&s->arg[k]);
        }
        if (!is_input(s) && !made[s->self]) printf("))(");
        for (int k = 0; k < s->n_in; k++)
            printf("%s%sx%d", k ? ", " : "", k == 0 && s->n_in > 1 ? "[" : "", s->in[k]);
        printf("%s)  # %s", s->n_in > 1 ? "]" : "", shape);
        if (s->ids) printf(", whole numbers below %d", s->ids);
        printf("\n");
        made[s->self] = true;
    }
    for (int k = 0; k < g->n_out; k++)
        printf("output x%d: %g * %s\n", g->out[k], g->loss_weight[k], loss_names[g->loss[k]]);
    printf("%lld rows%s, batch size %lld\n", (long long)g->rows, g->weighted ? " with weights" : "",
           (long long)g->batch);
}

#endif
