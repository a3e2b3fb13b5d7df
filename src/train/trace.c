/* The calls that a step makes while it is traced: each adds to the graph, or to the lists of what
 * the graph is finished with. See trace.h. More than 600 lines, since all of them share how a trace
 * fails and how its lists grow. */
#include "train/trace.h"
#include "base/memory.h"
#include "base/plural.h"
#include "graph/derive.h"
#include "train/whole_loss.h"
#include <string.h>

/* After the first failure every call fails with its text. */
#define BEGIN(t)                                                                                   \
    do {                                                                                           \
        if ((t)->failure.status < 0) return keel_failure_raise(&(t)->failure);                     \
    } while (0)

static keel_status end(keel_trace *t, keel_status s)
{
    if (s < 0) keel_failure_take(&t->failure, s);
    return s;
}

/* Makes room for `more` elements behind the `count` of a list. */
static keel_status room(void *list, int count, int more, size_t size)
{
    void *old;
    memcpy(&old, list, sizeof old);
    void *p = keel_grow(old, (size_t)(count + more), size);
    if (!p) return KEEL_ENOMEM;
    memcpy(list, &p, sizeof p);
    return KEEL_OK;
}

static bool is_value(const keel_trace *t, keel_traced v)
{
    return v >= 0 && v < t->n_value && t->value[v].value >= 0;
}

static keel_status check_values(const keel_trace *t, const keel_traced *in, int n)
{
    for (int i = 0; i < n; i++)
        if (!is_value(t, in[i]))
            return keel_fail(KEEL_EARG, "input %d is no value of this step", i);
    return KEEL_OK;
}

static keel_status put_values(keel_trace *t, const keel_value *value, const keel_value *mask, int n,
                              keel_traced *out)
{
    KEEL_TRY(room(&t->value, t->n_value, n, sizeof *t->value));
    *out = t->n_value;
    for (int i = 0; i < n; i++, t->n_value++)
        t->value[t->n_value] =
            (keel_traced_value){ value[i], mask ? mask[i] : KEEL_MASK_NONE, t->n_value };
    return KEEL_OK;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

keel_status keel_trace_field(keel_trace *t, int field, keel_traced *out)
{
    const int n = t->options->n_input;
    keel_value v;
    if (t->field[field] >= 0) {
        *out = t->field[field];
        return KEEL_OK;
    }
    keel_spec spec = { .dtype = t->g->real };
    if (field < n) spec = (keel_spec){ t->input[field].dtype, t->input[field].shape };
    KEEL_TRY(keel_graph_input(t->g, &spec, &v));
    KEEL_TRY(room(&t->s->field, t->g->n_input - 1, 1, sizeof *t->s->field));
    t->s->field[t->g->n_input - 1] = field;
    KEEL_TRY(put_values(t, &v, NULL, 1, &t->field[field]));
    *out = t->field[field];
    return KEEL_OK;
}

static keel_status find_input(const keel_trace *t, const char *name, int *out)
{
    for (*out = 0; *out < t->options->n_input; ++*out)
        if (!strcmp(t->input[*out].path, name)) return KEEL_OK;
    return keel_fail(KEEL_EARG, "the %s has no input '%s'",
                     t->within ? "loss of all rows" : "function", name);
}

keel_status keel_trace_input(keel_trace *t, const char *name, keel_traced *out)
{
    int i;
    BEGIN(t);
    keel_status s = find_input(t, name, &i);
    if (s >= 0) s = keel_trace_field(t, i, out);
    return end(t, s);
}

keel_status keel_trace_input_shape(keel_trace *t, const char *name, keel_shape *out)
{
    int i;
    BEGIN(t);
    const keel_status s = find_input(t, name, &i);
    if (s >= 0) *out = t->input[i].shape;
    return end(t, s);
}

static const char *const fact_name[] = {
    "KEEL_FACT_ROWS",   "KEEL_FACT_WEIGHTS",      "KEEL_FACT_ROW",
    "KEEL_FACT_DEVICE", "KEEL_FACT_DEVICE_FIRST", "KEEL_FACT_DEVICE_ROWS",
};

keel_status keel_trace_fact(keel_trace *t, keel_fact fact, keel_traced *out)
{
    BEGIN(t);
    if ((unsigned)fact > KEEL_FACT_DEVICE_ROWS)
        return end(t, keel_fail(KEEL_EARG, "a step has no fact %d", (int)fact));
    if (t->within)
        return end(t, keel_fail(KEEL_EUNSUP,
                                "%s in a loss of all rows, which has one row: give it the fact as "
                                "a value",
                                fact_name[fact]));
    return end(t, keel_trace_field(t, t->options->n_input + (int)fact, out));
}

/* ---- models and layers ----------------------------------------------------------------------- */

/* The values and masks of some inputs: masks follow the values. */
static keel_status take_inputs(const keel_trace *t, const keel_traced *in, int n, keel_value **out)
{
    KEEL_TRY(check_values(t, in, n));
    if (!(*out = keel_calloc(2 * (size_t)n, sizeof **out))) return KEEL_ENOMEM;
    for (int i = 0; i < n; i++) {
        (*out)[i] = t->value[in[i]].value;
        (*out)[n + i] = t->value[in[i]].mask;
    }
    return KEEL_OK;
}

/* The same for a part of a model, which does not need all of its inputs. */
static keel_status take_some_inputs(const keel_trace *t, const keel_traced *in, int n,
                                    keel_value **out)
{
    if (!(*out = keel_calloc(2 * (size_t)n, sizeof **out))) return KEEL_ENOMEM;
    for (int i = 0; i < n; i++) {
        const bool unused = in[i] == KEEL_UNUSED;
        if (!unused && !is_value(t, in[i]))
            return keel_fail(KEEL_EARG, "input %d is no value of this step", i);
        (*out)[i] = unused ? -1 : t->value[in[i]].value;
        (*out)[n + i] = unused ? KEEL_MASK_NONE : t->value[in[i]].mask;
    }
    return KEEL_OK;
}

static keel_status check_model(const keel_trace *t, const keel_model *m, int n_in)
{
    if (!m->finished || !m->n_output)
        return keel_fail(KEEL_EARG, "the model '%s' is not finished: it has no outputs yet",
                         m->name ? m->name : "");
    if (m->outer)
        return keel_fail(KEEL_EARG, "the model '%s' is a layer of another: call that", m->name);
    if (m->dtype != t->options->dtype)
        return keel_fail(KEEL_EARG, "the model '%s' is of %s, the function of %s", m->name,
                         keel_dtype_name(m->dtype), keel_dtype_name(t->options->dtype));
    if (m->n_input != n_in)
        return keel_fail(KEEL_EARG, "the model '%s' has %d input%s, and is called with %d", m->name,
                         m->n_input, keel_s(m->n_input), n_in);
    if (t->within && m->n_weight > 0)
        return keel_fail(KEEL_EUNSUP,
                         "the model '%s' has weights: call it outside of the loss of all rows, and "
                         "give its outputs to that",
                         m->name);
    if (m->compute == KEEL_FLOAT16)
        return keel_fail(KEEL_EUNSUP,
                         "the model '%s' is of mixed_float16, whose loss is scaled; a function "
                         "takes float32 and mixed_bfloat16",
                         m->name);
    if (keel_model_reads_rows(m))
        return keel_fail(KEEL_EUNSUP,
                         "the model '%s' looks up its inputs where rows are read: do that before "
                         "the step",
                         m->name);
    return KEEL_OK;
}

static keel_status find_model(keel_trace *t, keel_model *m, keel_called **out)
{
    keel_called_models *all = t->models;
    keel_model_layer **layers;
    int n_layer;
    for (int i = 0; i < all->n; i++)
        if (all->model[i].model == m) {
            *out = &all->model[i];
            return KEEL_OK;
        }
    if (all->sealed)
        return keel_fail(KEEL_EARG, "the model '%s' was not called when the step was first traced",
                         m->name);
    KEEL_TRY(room(&all->model, all->n, 1, sizeof *all->model));
    KEEL_TRY(keel_model_all_layers(m, &layers, &n_layer));
    keel_free(layers);
    all->model[all->n] =
        (keel_called){ .model = m, .first = all->n_weight, .stream = all->n_stream };
    all->n_stream += n_layer;
    all->n_weight += m->n_weight;
    *out = &all->model[all->n++];
    return KEEL_OK;
}

/* Notes a call in training, the last of t->call. */
static keel_status note_call(keel_trace *t, const keel_model *m, const keel_traced *in)
{
    KEEL_TRY(room(&t->call, t->n_call, 1, sizeof *t->call));
    keel_traced_call *c = &t->call[t->n_call];
    *c = (keel_traced_call){ .model = m };
    if (!(c->in = keel_calloc((size_t)m->n_input, sizeof *c->in))) return KEEL_ENOMEM;
    memcpy(c->in, in, (size_t)m->n_input * sizeof *in);
    t->n_call++;
    return KEEL_OK;
}

static bool same_values(const keel_trace *t, const keel_traced *a, const keel_traced *b, int n)
{
    for (int i = 0; i < n; i++) {
        const keel_traced x = a[i] < 0 ? a[i] : t->value[a[i]].first;
        if (x != (b[i] < 0 ? b[i] : t->value[b[i]].first)) return false;
    }
    return true;
}

/* The call that is made again, *out of t->call: the last one of these values, else the only one;
 * -1: one of several, of which none draws numbers. */
static keel_status find_call(const keel_trace *t, const keel_model *m, const keel_traced *in,
                             int *out)
{
    int n = 0, last = -1, same = -1;
    bool draws = false;
    for (int i = 0; i < t->n_call; i++) {
        const keel_traced_call *c = &t->call[i];
        if (c->model != m) continue;
        n++;
        last = i;
        draws = draws || c->draws.n > 0;
        if (same_values(t, c->in, in, m->n_input)) same = i;
    }
    if (n == 0)
        return keel_fail(KEEL_EARG,
                         "the step has not called the model '%s' in training before, so there is "
                         "no call to make again",
                         m->name);
    if (n > 1 && same < 0 && draws)
        return keel_fail(KEEL_EUNSUP,
                         "the step has called the model '%s', which draws numbers, several times "
                         "in training, but not on these values: which call is made again is not "
                         "known",
                         m->name);
    *out = same >= 0 || n > 1 ? same : last;
    return KEEL_OK;
}

/* Adds the model to the graph. call: of t->call, this one, or that which is made again. */
static keel_status emit_model(keel_trace *t, const keel_called *called, keel_calling how, int call,
                              const keel_value *given, const bool *wanted, keel_value *made)
{
    const keel_model *m = called->model;
    const bool again = how == KEEL_TRAINING_AGAIN;
    keel_model_draws own = { 0 }, *noted = call < 0 ? NULL : &t->call[call].draws;
    t->g->training = how != KEEL_INFERENCE;
    t->g->first_weight = called->first;
    t->g->repeats = again ? ++t->n_again : 0;
    t->chances.first = called->stream;
    t->chances.again = again ? noted : NULL;
    t->chances.log = again ? &own : noted;
    const keel_status s = keel_model_emit_into(m, t->g, given, given + m->n_input, wanted,
                                               &t->chances, made, made + m->n_output);
    t->chances.again = NULL;
    t->chances.log = NULL;
    t->g->repeats = 0;
    t->g->turn += 2 + (int)m->work;
    keel_free(own.of);
    return s;
}

/* Notes the outputs of a call: those of one that is made again are those of the first. */
static void note_outputs(keel_trace *t, keel_calling how, int call, int n, keel_traced out)
{
    if (how == KEEL_TRAINING) t->call[call].out = out;
    for (int i = 0; how == KEEL_TRAINING_AGAIN && call >= 0 && i < n; i++)
        t->value[out + i].first = t->call[call].out + i;
}

static keel_status call_model(keel_trace *t, keel_model *m, keel_calling how, const keel_traced *in,
                              int n_in, const bool *wanted, keel_traced *out)
{
    keel_called *called = NULL;
    keel_value *given = NULL, *made = NULL;
    int call = -1;
    keel_status s = check_model(t, m, n_in);
    if (s >= 0) s = find_model(t, m, &called);
    if (s >= 0) s = (wanted ? take_some_inputs : take_inputs)(t, in, n_in, &given);
    if (s >= 0 && how == KEEL_TRAINING_AGAIN) s = find_call(t, m, in, &call);
    if (s >= 0 && how == KEEL_TRAINING) s = note_call(t, m, in);
    if (s < 0) goto out;
    if (how == KEEL_TRAINING) call = t->n_call - 1;
    if (!(made = keel_calloc(2 * (size_t)m->n_output, sizeof *made))) {
        s = KEEL_ENOMEM;
        goto out;
    }
    s = emit_model(t, called, how, call, given, wanted, made);
    if (s >= 0 && t->g->n_carried)
        s = keel_fail(KEEL_EUNSUP, "it has stateful layers, which a function does not take");
    if (s >= 0) s = put_values(t, made, made + m->n_output, m->n_output, out);
    if (s >= 0) note_outputs(t, how, call, m->n_output, *out);
    if (s < 0 && s != KEEL_ENOMEM) s = keel_fail_within(s, "model '%s'", m->name);
out:
    keel_free(given);
    keel_free(made);
    return s;
}

keel_status keel_trace_model(keel_trace *t, keel_model *m, bool training, const keel_traced *in,
                             int n_in, keel_traced *out)
{
    BEGIN(t);
    const keel_calling how = training ? KEEL_TRAINING : KEEL_INFERENCE;
    return end(t, call_model(t, m, how, in, n_in, NULL, out));
}

keel_status keel_trace_outputs(keel_trace *t, keel_model *m, keel_calling how,
                               const keel_traced *in, int n_in, const bool *wanted,
                               keel_traced *out)
{
    BEGIN(t);
    bool any = false;
    if ((unsigned)how > KEEL_TRAINING_AGAIN)
        return end(t, keel_fail(KEEL_EARG, "no way to call a model: %d", (int)how));
    for (int i = 0; i < m->n_output; i++) any = any || wanted[i];
    if (!any) return end(t, keel_fail(KEEL_EARG, "no output of the model '%s' is wanted", m->name));
    return end(t, call_model(t, m, how, in, n_in, wanted, out));
}

static keel_status call_layer(keel_trace *t, const char *name, const keel_arg *args,
                              const keel_arg *with, const keel_traced *in, int n_in,
                              keel_traced *out)
{
    keel_emit e = { .graph = t->g, .n_in = n_in };
    keel_value *given = NULL;
    json_t *config = NULL;
    int layer;
    if (!strcmp(name, "InputLayer"))
        return keel_fail(KEEL_EARG, "an input of a step is one of its function's");
    keel_status s = keel_args_json(args, &config);
    if (s >= 0) s = keel_model_new_layer(t->ops, name, config, &layer);
    if (s < 0) goto out;
    const keel_layer *kind = t->ops->layer[layer].kind;
    if (kind->reads_rows || kind->make || kind->held || kind->held_list) {
        s = keel_fail(KEEL_EUNSUP, "a %s belongs to a model, which the step calls", name);
        goto out;
    }
    if (n_in < kind->min_inputs || (kind->max_inputs >= 0 && n_in > kind->max_inputs)) {
        s = keel_fail(KEEL_EARG, "a %s takes %d input%s, not %d", name, kind->min_inputs,
                      keel_s(kind->min_inputs), n_in);
        goto out;
    }
    if ((s = keel_model_call_json(kind, with, n_in, (json_t **)&e.call)) < 0) goto out;
    if ((s = take_inputs(t, in, n_in, &given)) < 0) goto out;
    e.in = given;
    e.mask = given + n_in;
    t->g->training = true;
    t->g->first_weight = 0;
    t->chances.first = t->next_stream++;
    t->chances.alone = true;
    s = keel_model_emit_layer(t->ops, NULL, layer, &e, &t->chances);
    t->chances.alone = false;
    if (s >= 0) s = put_values(t, e.out, e.out_mask, e.n_out, out);
    if (s >= 0 && !strcmp(name, "ops.StopGradient")) t->value[*out].first = t->value[in[0]].first;
out:
    keel_free(e.out);
    keel_free(e.out_mask);
    keel_free(given);
    json_decref((json_t *)e.call);
    json_decref(config);
    return s < 0 && s != KEEL_ENOMEM ? keel_fail_within(s, "'%s'", name) : s;
}

keel_status keel_trace_call(keel_trace *t, const char *layer, const keel_arg *args,
                            const keel_arg *with, const keel_traced *in, int n_in, keel_traced *out)
{
    BEGIN(t);
    return end(t, call_layer(t, layer, args, with, in, n_in, out));
}

static keel_status add_gradient_of(keel_trace *t, keel_traced y, keel_traced x, keel_traced *out)
{
    keel_value made = -1;
    KEEL_TRY(check_values(t, (keel_traced[]){ y, x }, 2));
    t->g->training = true;
    KEEL_TRY(keel_graph_derive(t->g, t->value[y].value, t->value[x].value, &made));
    return put_values(t, &made, NULL, 1, out);
}

keel_status keel_trace_gradient_of(keel_trace *t, keel_traced y, keel_traced x, keel_traced *out)
{
    BEGIN(t);
    return end(t, add_gradient_of(t, y, x, out));
}

/* ---- losses and gradients -------------------------------------------------------------------- */

static keel_status add_loss(keel_trace *t, const keel_named *loss, const keel_traced in[3],
                            keel_scalar *out)
{
    keel_traced_loss l = { .prediction = in[0], .target = in[1], .weight = in[2], .scored = -1 };
    KEEL_TRY(check_values(t, in, 1));
    if (loss) KEEL_TRY(check_values(t, in + 1, 1));
    if (l.weight == KEEL_UNWEIGHTED)
        KEEL_TRY(keel_trace_field(t, t->options->n_input + KEEL_FACT_ONE, &l.weight));
    else
        KEEL_TRY(check_values(t, in + 2, 1));
    if (!loss) KEEL_TRY(keel_trace_field(t, t->options->n_input + KEEL_FACT_ONE, &l.target));
    if (t->n_loss >= KEEL_OUTPUTS_MAX)
        return keel_fail(KEEL_EUNSUP, "a step of more than %d losses", KEEL_OUTPUTS_MAX);
    KEEL_TRY(room(&t->loss, t->n_loss, 1, sizeof *t->loss));
    if (loss) KEEL_TRY(keel_named_loss(loss, &l.loss));
    t->loss[t->n_loss] = l;
    *out = t->n_loss++;
    return KEEL_OK;
}

keel_status keel_trace_loss(keel_trace *t, const keel_named *loss, keel_traced y_true,
                            keel_traced y_pred, keel_traced weight, keel_scalar *out)
{
    BEGIN(t);
    if (!loss) return end(t, keel_fail(KEEL_EARG, "a loss must be given"));
    return end(t, add_loss(t, loss, (keel_traced[]){ y_pred, y_true, weight }, out));
}

keel_status keel_trace_mean(keel_trace *t, keel_traced value, keel_traced weight, keel_scalar *out)
{
    BEGIN(t);
    return end(t, add_loss(t, NULL, (keel_traced[]){ value, -1, weight }, out));
}

static keel_status add_whole_loss(keel_trace *t, const keel_whole_loss *loss, keel_scalar *out)
{
    if (t->within)
        return keel_fail(KEEL_EUNSUP, "a loss of all rows in the step of another: call it outside");
    KEEL_TRY(check_values(t, loss->value, loss->n));
    KEEL_TRY(add_loss(t, NULL, (keel_traced[]){ loss->value[0], -1, KEEL_UNWEIGHTED }, out));
    return keel_whole_create(&t->loss[*out].whole, t, loss);
}

keel_status keel_trace_whole_loss(keel_trace *t, const keel_whole_loss *loss, keel_scalar *out)
{
    BEGIN(t);
    if (!loss || loss->n < 1)
        return end(t, keel_fail(KEEL_EARG, "a loss of all rows needs values"));
    return end(t, add_whole_loss(t, loss, out));
}

/* The gradients of a loss of all rows are those of the step that calls it. */
static keel_status check_outer(const keel_trace *t, const char *what)
{
    if (!t->within) return KEEL_OK;
    return keel_fail(KEEL_EARG, "the step of a loss of all rows %s, which is for the outer step",
                     what);
}

static keel_status watch(const keel_trace *t, const keel_watched *w, bool *watched)
{
    const keel_called *of = NULL;
    bool found = false;
    for (int i = 0; i < t->models->n; i++)
        if (t->models->model[i].model == w->model) of = &t->models->model[i];
    if (!of)
        return keel_fail(KEEL_EARG, "gradients for the weights of a model that this step has not "
                                    "called before");
    for (int k = 0; k < w->model->n_weight; k++) {
        const keel_model_weight *weight = &w->model->weight[k];
        if (w->weight && strcmp(w->weight, weight->info.name)) continue;
        if (w->weight && !weight->trainable)
            return keel_fail(KEEL_EARG, "the weight '%s' of the model '%s' is not trainable",
                             w->weight, w->model->name);
        found = true;
        watched[of->first + k] = watched[of->first + k] || weight->trainable;
    }
    if (found || !w->weight) return KEEL_OK;
    return keel_fail(KEEL_EARG, "the model '%s' has no weight '%s': names read 'dense/kernel'",
                     w->model->name, w->weight);
}

static keel_status add_gradients(keel_trace *t, const keel_term *terms, int n_term,
                                 const keel_watched *watched, int n_watched, keel_gradients *out)
{
    KEEL_TRY(check_outer(t, "takes gradients for weights"));
    KEEL_TRY(room(&t->gradients, t->n_gradients, 1, sizeof *t->gradients));
    keel_traced_gradients *g = &t->gradients[t->n_gradients];
    *g = (keel_traced_gradients){ .n_term = n_term, .n_weight = t->models->n_weight, .apply = -1 };
    if (n_term < 1 || n_watched < 1)
        return keel_fail(KEEL_EARG, "gradients of %d losses for %d models", n_term, n_watched);
    for (int i = 0; i < n_term; i++)
        if (terms[i].scalar < 0 || terms[i].scalar >= t->n_loss)
            return keel_fail(KEEL_EARG, "term %d is no loss of this step", i);
    *out = t->n_gradients++; /* from here on freed with t */
    g->term = keel_calloc((size_t)n_term, sizeof *g->term);
    g->watched = keel_calloc((size_t)g->n_weight, sizeof *g->watched);
    if (!g->term || !g->watched) return KEEL_ENOMEM;
    memcpy(g->term, terms, (size_t)n_term * sizeof *terms);
    for (int i = 0; i < n_watched; i++) KEEL_TRY(watch(t, &watched[i], g->watched));
    return KEEL_OK;
}

keel_status keel_trace_gradients(keel_trace *t, const keel_term *terms, int n_term,
                                 const keel_watched *watched, int n_watched, keel_gradients *out)
{
    BEGIN(t);
    return end(t, add_gradients(t, terms, n_term, watched, n_watched, out));
}

static keel_status check_movers(const keel_trace *t, const keel_traced_gradients *g)
{
    for (int i = 0; i < t->n_gradients; i++) {
        const keel_traced_gradients *other = &t->gradients[i];
        for (int v = 0; other->apply >= 0 && v < other->n_weight && v < g->n_weight; v++)
            if (other->watched[v] && g->watched[v])
                return keel_fail(KEEL_EARG, "two optimizers of a step move the same weight");
    }
    return KEEL_OK;
}

static keel_status add_apply(keel_trace *t, keel_gradients g, const keel_apply *apply)
{
    KEEL_TRY(check_outer(t, "applies an optimizer"));
    if (g < 0 || g >= t->n_gradients) return keel_fail(KEEL_EARG, "no gradients of this step");
    KEEL_TRY(check_movers(t, &t->gradients[g]));
    KEEL_TRY(room(&t->apply, t->n_apply, 1, sizeof *t->apply));
    t->apply[t->n_apply] = (keel_traced_apply){ .gradients = g, .options = *apply };
    KEEL_TRY(keel_named_optimizer(&apply->optimizer, &t->apply[t->n_apply].chosen));
    t->gradients[g].apply = t->n_apply++;
    return KEEL_OK;
}

keel_status keel_trace_apply(keel_trace *t, keel_gradients g, const keel_apply *apply)
{
    BEGIN(t);
    return end(t, add_apply(t, g, apply));
}

/* ---- results --------------------------------------------------------------------------------- */

static keel_status add_return(keel_trace *t, const char *name, int value, int scalar)
{
    for (int i = 0; i < t->n_return; i++)
        if (!strcmp(t->ret[i].name, name))
            return keel_fail(KEEL_EARG, "two results are named '%s'", name);
    KEEL_TRY(room(&t->ret, t->n_return, 1, sizeof *t->ret));
    t->ret[t->n_return] = (keel_traced_return){ keel_strdup(name), value, scalar, -1 };
    if (!t->ret[t->n_return].name) return KEEL_ENOMEM;
    t->n_return++;
    return KEEL_OK;
}

keel_status keel_trace_return(keel_trace *t, const char *name, keel_traced value)
{
    BEGIN(t);
    if (!is_value(t, value))
        return end(t, keel_fail(KEEL_EARG, "result '%s' is no value of this step", name));
    return end(t, add_return(t, name, value, -1));
}

keel_status keel_trace_return_scalar(keel_trace *t, const char *name, keel_scalar scalar)
{
    BEGIN(t);
    if (scalar < 0 || scalar >= t->n_loss)
        return end(t, keel_fail(KEEL_EARG, "result '%s' is no scalar of this step", name));
    return end(t, add_return(t, name, -1, scalar));
}

/* ---- the trace ------------------------------------------------------------------------------- */

keel_status keel_trace_run(keel_trace *t)
{
    const keel_function_options *o = t->options;
    for (int i = 0; i < KEEL_FIELDS_MAX + KEEL_FACT_COUNT; i++) t->field[i] = -1;
    t->chances = (keel_model_chances){ .next = KEEL_MODEL_LAYERS_MAX };
    t->chances.drew = keel_calloc(KEEL_MODEL_LAYERS_MAX, sizeof *t->chances.drew);
    if (!t->chances.drew) return KEEL_ENOMEM;
    t->next_stream = t->models->n_stream;
    KEEL_TRY(keel_graph_create(&t->g, o->dtype, true));
    t->g->backward = t->backward;
    t->g->scored = t->backward;
    KEEL_TRY(keel_model_begin(&t->ops, o->name ? o->name : "function", o->dtype, o->seed));
    const unsigned said = keel_error_count();
    const keel_status s = o->step(o->context, t);
    if (t->failure.status < 0) return keel_failure_raise(&t->failure);
    if (s < 0 && keel_error_count() == said)
        return keel_fail(s, "the step returned %s", keel_status_name(s));
    return s < 0 ? s : KEEL_OK; /* with the step's own text */
}

void keel_trace_free(keel_trace *t)
{
    keel_graph_destroy(t->g);
    keel_model_destroy(t->ops);
    keel_free(t->chances.drew);
    for (int i = 0; i < t->n_loss; i++) {
        keel_object_free(&t->loss[i].loss);
        keel_whole_destroy(t->loss[i].whole);
    }
    for (int i = 0; i < t->n_gradients; i++) {
        keel_free(t->gradients[i].term);
        keel_free(t->gradients[i].watched);
    }
    for (int i = 0; i < t->n_apply; i++) keel_compiled_free(&t->apply[i].chosen);
    for (int i = 0; i < t->n_return; i++) keel_free(t->ret[i].name);
    for (int i = 0; i < t->n_call; i++) {
        keel_free(t->call[i].in);
        keel_free(t->call[i].draws.of);
    }
    keel_free(t->call);
    keel_free(t->value);
    keel_free(t->loss);
    keel_free(t->gradients);
    keel_free(t->apply);
    keel_free(t->ret);
    keel_free(t->trains);
    *t = (keel_trace){ 0 };
}
