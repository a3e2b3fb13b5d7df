/* Training loops drawn by chance: their models and functions, in which order they run, and on which
 * rows. */
#ifndef TESTS_RANDOM_LOOPS_H
#define TESTS_RANDOM_LOOPS_H
#include "random_fit.h"

enum { MOST_RUNS = 9 };

/* ---- what is drawn --------------------------------------------------------------------------- */

typedef enum run_kind { TRAINS, TRAINS_HEAD, LOOKS, FITS, PREDICTS, RUN_KINDS } run_kind;
enum { FUNCTIONS = 3 };

typedef struct looping {
    fitting f; /* its model, rows and optimizer; the head is a model on its first output */
    int n_input, n_run;
    bool both;   /* TRAINS trains the head, too */
    int asks[2]; /* whether a function is asked before it applies an optimizer: of which rows */
    bool mean, weighted;
    void *more[2]; /* rows that do not differ in length, and their targets */
    struct {
        run_kind kind;
        int64_t first, rows, length;
        int weights; /* 0: 0; 1: as drawn; 2: the first half is 0 */
    } run[MOST_RUNS];
} looping;

static void draw_looping(looping *l, uint64_t seed)
{
    *l = (looping){ 0 };
    must(draw_fitting(&l->f, seed));
    fitting *f = &l->f;
    f->policy = f->schedule = f->multi = f->callback = f->second =
        NULL; /* which functions have not */
    f->o.epochs = 1;
    if (f->dtype == KEEL_FLOAT32 && !f->shards) f->dtype = KEEL_FLOAT64;
    l->n_run = 2 + chance(MOST_RUNS - 1);
    l->both = percent(40);
    l->weighted = percent(40);
    l->mean = percent(30);
    for (int i = 0; i < 2; i++) l->asks[i] = percent(70) ? 0 : 1 + chance(3);
    for (int i = 0; f->open && i < 2; i++) {
        const int64_t n = f->g.rows * (i ? 1 : LENGTH);
        l->more[i] = numbers(f->dtype, n);
        for (int64_t k = 0; k < n; k++)
            put(l->more[i], f->dtype, k, i ? (float)chance_real() : chance(WORDS));
    }
    for (int i = 0; i < l->n_run; i++) {
        const int kind = chance(20);
        l->run[i].kind = kind < 9    ? TRAINS
                         : kind < 13 ? TRAINS_HEAD
                         : kind < 16 ? LOOKS
                         : kind < 18 ? FITS
                                     : PREDICTS;
        const int64_t most = f->g.rows;
        l->run[i].rows = percent(50) ? most : 1 + chance((int)(percent(50) ? most : most / 4 + 1));
        l->run[i].first = chance((int)(most - l->run[i].rows) + 1);
        l->run[i].length = lengths[chance(3)];
        l->run[i].weights = percent(80) ? 1 : chance(3);
    }
}

static void free_looping(looping *l)
{
    for (int i = 0; i < 2; i++) free(l->more[i]);
    free_fitting(&l->f);
}

static void describe_looping(const looping *l, char out[2 * TEXT])
{
    static const char *const names[] = { "trains", "head", "looks", "fits", "predicts" };
    char fits[TEXT];
    describe(&l->f, fits);
    int n =
        snprintf(out, 2 * TEXT, "%s%s%s%s, asks %d and %d:", fits, l->both ? ", both" : "",
                 l->weighted ? ", weighted" : "", l->mean ? ", mean" : "", l->asks[0], l->asks[1]);
    for (int i = 0; i < l->n_run; i++)
        n += snprintf(out + n, (size_t)(2 * TEXT - n), " %s %d", names[l->run[i].kind],
                      (int)l->run[i].rows);
}

/* ---- steps ----------------------------------------------------------------------------------- */

typedef struct asked {
    int rule;
    keel_applying last;
} asked;

typedef struct loops {
    const looping *l;
    keel_model *model[2];
    keel_function *function[FUNCTIONS];
    asked asked[FUNCTIONS][2];
} loops;

typedef struct own_step {
    loops *of;
    run_kind kind;
} own_step;

/* Of rows, since a step that failed asks once more. */
static bool is_asked(void *context, const keel_applying *now)
{
    asked *a = context;
    a->last = *now;
    return a->rule == 1 ? now->rows % 2 == 0 : a->rule == 2 ? now->applied < 2 : true;
}

static keel_traced input_at(keel_trace *t, const char *what, int i)
{
    char name[16];
    keel_traced x = -1;
    snprintf(name, sizeof name, "%s%d", what, i);
    keel_trace_input(t, name, &x);
    return x;
}

static void learn(own_step *s, keel_trace *t, int model, const keel_term *term, int n)
{
    keel_gradients g = -1;
    const drawn_optimizer *o = &s->of->l->f.optimizer;
    asked *a = &s->of->asked[s->kind][model];
    a->rule = s->of->l->asks[model];
    keel_apply apply = { { model ? "adam" : o->name, model ? NULL : o->arg }, NULL, a };
    if (a->rule) apply.when = is_asked;
    keel_trace_gradients(t, term, n, &(keel_watched){ s->of->model[model] }, 1, &g);
    keel_trace_apply(t, g, &apply);
}

static keel_status step_of(void *context, keel_trace *t)
{
    own_step *s = context;
    const looping *l = s->of->l;
    const fitting *f = &l->f;
    keel_traced in[STEPS_MAX], out[OUTS_MAX] = { 0 }, head = -1, stopped = -1, weight = -1;
    keel_term term[OUTS_MAX + 1];
    char name[16];
    if (l->weighted) keel_trace_input(t, "weight", &weight);
    for (int i = 0; i < l->n_input; i++) in[i] = input_at(t, "x", i);
    keel_trace_model(t, s->of->model[0], s->kind == TRAINS, in, l->n_input, out);
    for (int k = 1; k < f->g.n_out; k++) out[k] = out[0] + k;
    for (int k = 0; k < f->g.n_out; k++) {
        term[k].factor = f->g.loss_weight[k];
        keel_trace_loss(t, &(keel_named){ loss_names[f->g.loss[k]] }, input_at(t, "y", k), out[k],
                        l->weighted ? weight : KEEL_UNWEIGHTED, &term[k].scalar);
        snprintf(name, sizeof name, "loss%d", k);
        keel_trace_return_scalar(t, name, term[k].scalar);
    }
    if (s->kind == TRAINS) learn(s, t, 0, term, f->g.n_out);
    if (s->kind == TRAINS_HEAD || l->both) {
        keel_scalar loss = -1;
        keel_trace_call(t, "ops.StopGradient", NULL, NULL, out, 1, &stopped);
        keel_trace_model(t, s->of->model[1], s->kind != LOOKS, &stopped, 1, &head);
        if (l->mean)
            keel_trace_mean(t, head, weight, &loss);
        else
            keel_trace_loss(t, &(keel_named){ "mse" }, stopped, head, KEEL_UNWEIGHTED, &loss);
        if (s->kind != LOOKS) learn(s, t, 1, &(keel_term){ loss, 0.5 }, 1);
        keel_trace_return(t, "head", head);
        keel_trace_return_scalar(t, "head loss", loss);
    }
    return keel_trace_return(t, "out", out[0]);
}

static void make_head(const loops *x, keel_model **out)
{
    keel_symbol h;
    const random_graph *g = &x->l->f.g;
    const int64_t units = x->l->f.open ? 1 : g->step[g->out[0]].shape.dim[0];
    must(keel_model_create(out, NULL, x->l->f.dtype, 5));
    must(keel_model_input(*out, KEEL_DIMS(units), NULL, &h));
    h = must_call(*out, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", 5), KEEL_ARG_STR("activation", "tanh")), h);
    h = must_call(*out, "BatchNormalization", NULL, h);
    h = must_call(*out, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.3)), h);
    h = must_call(*out, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", units)), h);
    must(keel_model_outputs(*out, &h, 1));
}

/* ---- inputs ---------------------------------------------------------------------------------- */

enum { FIELDS = STEPS_MAX + OUTS_MAX + 1 };

/* Fields of a function, with their names in `name`; returns how many. */
static int fields_of(looping *l, keel_data_field field[FIELDS], char name[FIELDS][16])
{
    const random_graph *g = &l->f.g;
    bool reached[STEPS_MAX];
    int n = 0;
    reached_steps(g, reached);
    for (int i = 0; i < g->n && !l->f.open; i++)
        if (reached[i] && is_input(&g->step[i])) field[n++].shape = g->step[i].shape;
    if (l->f.open) field[n++].shape = (keel_shape){ 1, { KEEL_DIM_OPEN } };
    l->n_input = n;
    for (int k = 0; k < g->n_out; k++) {
        keel_shape out = l->f.open ? (keel_shape){ 1, { 1 } } : g->step[g->out[k]].shape;
        if (g->loss[k] == LOSS_SPARSE) out.rank--;
        field[n++].shape = out;
    }
    for (int i = 0; i < n; i++) {
        const bool y = i >= l->n_input;
        snprintf(name[i], sizeof name[i], "%s%d", y ? "y" : "x", y ? i - l->n_input : i);
        field[i] = (keel_data_field){ name[i], l->f.dtype, field[i].shape };
    }
    field[n] = (keel_data_field){ "weight", l->f.dtype, { 0 }, KEEL_ROLE_WEIGHT };
    return n + 1;
}

/* Rows of a run. weight: room for their weights. */
static void inputs_of(const looping *l, int run, const keel_data_field *field, int n,
                      keel_tensor *in, void *weight)
{
    const int64_t rows = l->run[run].rows, first = l->run[run].first;
    const size_t element = keel_dtype_size(l->f.dtype);
    for (int i = 0; i < n; i++) {
        keel_shape row = field[i].shape;
        if (l->f.open && i == 0) row.dim[0] = l->run[run].length;
        const char *from = l->f.open ? l->more[i] : l->f.rows.array[i];
        in[i] = (keel_tensor){ l->f.dtype, { row.rank + 1, { rows } }, NULL };
        for (int k = 0; k < row.rank; k++) in[i].shape.dim[k + 1] = row.dim[k];
        in[i].data = (char *)from + (size_t)(first * keel_shape_count(&row)) * element;
    }
    for (int64_t k = 0; k < rows; k++)
        put(weight, l->f.dtype, k,
            l->run[run].weights == 0 || (l->run[run].weights == 2 && k < rows / 2) ? 0
            : l->f.rows.weight ? (double)l->f.rows.weight[first + k]
                               : 1);
    in[n] = (keel_tensor){ l->f.dtype, { 1, { rows } }, weight };
}

#endif
