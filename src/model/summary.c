/* Text about models and layers: the table of a model's layers, and the page about a layer class.
 * Both come from the tables that read files and calls. */
#include "base/memory.h"
#include "base/plural.h"
#include "base/text.h"
#include "base/type_help.h"
#include "model/parts.h"
#include "tensor/dtype.h"
#include <stdio.h>
#include <string.h>

void keel_model_summary_free(char *text)
{
    keel_free(text);
}

static keel_status give(keel_text *t, char **out)
{
    if (t->failed || !t->data) {
        keel_text_free(t);
        return keel_fail(KEEL_ENOMEM, "out of memory writing a text");
    }
    *out = t->data;
    return KEEL_OK;
}

/* ---- the layers of a model ------------------------------------------------------------------- */

static const keel_model_node *last_node(const keel_model *m, int layer)
{
    for (int k = m->n_node - 1; k >= 0; k--)
        if (m->node[k].layer == layer) return &m->node[k];
    return NULL;
}

static void shape_cell(char out[96], const keel_model *m, int layer)
{
    const keel_model_node *n = last_node(m, layer);
    size_t at = (size_t)snprintf(out, 96, "(None");
    const keel_shape *shape = n ? &m->symbol[n->out].spec.shape : NULL;
    for (int i = 0; n && i < shape->rank && at < 70; i++)
        if (shape->dim[i] == KEEL_DIM_OPEN)
            at += (size_t)snprintf(out + at, 96 - at, ", None");
        else
            at += (size_t)snprintf(out + at, 96 - at, ", %lld", (long long)shape->dim[i]);
    snprintf(out + at, 96 - at, ")");
}

static int64_t layer_params(const keel_model *m, int layer)
{
    const keel_model *root = keel_model_outermost(m);
    const keel_model_layer *l = &m->layer[layer];
    int64_t n = 0;
    for (int k = 0; k < l->n_weight; k++)
        n += keel_shape_count(&root->weight[l->weight[k]].info.spec.shape);
    for (int i = 0; l->inner && i < l->inner->n_layer; i++) n += layer_params(l->inner, i);
    return n;
}

static void connected_cell(keel_text *t, const keel_model *m, int layer)
{
    const char *between = "";
    for (int k = 0; k < m->n_node; k++) {
        if (m->node[k].layer != layer) continue;
        for (int i = 0; i < m->node[k].n_in; i++, between = ", ") {
            keel_text_add(t, "%s", between);
            keel_text_add_name(t, 0, m->layer[keel_model_maker(m, m->node[k].in[i])->layer].name);
        }
    }
}

static int at_least(int width, size_t length)
{
    return (int)length > width ? (int)length : width;
}

static void optimizer_lines(keel_text *t, const keel_model *m)
{
    const keel_model_compiled *c = &m->compiled;
    char steps[28], numbers[28];
    const int64_t n = keel_model_state_bytes(m) / (int64_t)keel_dtype_size(m->dtype);
    if (!c->given) {
        keel_text_add(t, "Not compiled: %s\n",
                      m->refused ? m->refused : "no optimizer and no loss.");
        return;
    }
    keel_text_add(t, "Optimizer: %s", c->multi ? "MultiOptimizer of " : "");
    for (int i = 0; i < c->n_optimizer; i++) {
        const keel_model_optimizer *o = &c->optimizer[i];
        if (c->multi) keel_text_add_name(t, 0, o->pattern ? o->pattern : "all other weights");
        keel_text_add(t, "%s%s, learning rate ", c->multi ? ": " : "", o->optimizer.type->name);
        if (o->schedule)
            keel_text_add(t, "by the schedule %s%s", o->schedule,
                          o->rate.type ? "" : " (not supported: give a number)");
        else
            keel_text_add(t, "%.7g", o->learning_rate);
        if (i + 1 < c->n_optimizer) keel_text_add(t, "; ");
    }
    keel_text_add(t, ", %s step%s done, %s number%s of state\n",
                  keel_group_digits(steps, c->iterations), keel_s(c->iterations),
                  keel_group_digits(numbers, n), keel_s(n));
    if (c->state_left_out)
        keel_text_add(t, "The file's state of the optimizer is of other weights and not used\n");
    for (int i = 0; i < m->n_output && i < KEEL_OUTPUTS_MAX; i++) {
        if (!c->loss[i].type) continue;
        keel_text_add(t, "Loss: %s", c->loss[i].type->name);
        if (m->n_output > 1) keel_text_add(t, " of ");
        if (m->n_output > 1) keel_text_add_name(t, 0, keel_model_output_name(m, i));
        if (c->loss_weight[i] != 1) keel_text_add(t, ", times %g", c->loss_weight[i]);
        keel_text_add(t, "\n");
    }
    for (int i = 0; i < c->n_metric; i++) {
        keel_text_add(t, "%s", i ? ", " : "Metrics: ");
        if (m->n_output > 1) {
            keel_text_add_name(t, 0, keel_model_output_name(m, c->metric[i].output));
            keel_text_add(t, "_");
        }
        keel_text_add(t, "%s%s%s", c->metric[i].name, c->metric[i].weighted ? " (weighted)" : "",
                      i + 1 == c->n_metric ? "\n" : "");
    }
    if (c->left_out) keel_text_add(t, "Metrics that are not supported: %s\n", c->left_out);
}

static void totals(keel_text *t, const keel_model *m)
{
    char number[28], bytes[32];
    int64_t trainable;
    const int64_t all = keel_model_count_params(m, &trainable);
    const struct {
        const char *what;
        int64_t n;
    } line[] = { { "Total", all },
                 { "Trainable", trainable },
                 { "Not trainable", all - trainable } };
    for (int i = 0; i < 3; i++)
        keel_text_add(t, "%s parameters: %s (%s)\n", line[i].what,
                      keel_group_digits(number, line[i].n),
                      keel_bytes_text(bytes, line[i].n * (int64_t)keel_dtype_size(m->dtype)));
}

enum { INDENT = 2 }; /* of the layers of an inner model */

typedef struct table { /* the widths of its columns */
    int name, kind, dims, number;
    bool differ; /* the layers have different dtype policies */
} table;

/* Layers that a layer has made are not shown, as in Keras. */
static bool shows_inner(const keel_model_layer *l)
{
    return l->inner && !l->inner->made;
}

static void measure(const keel_model *m, int depth, table *w)
{
    char shape[96], params[28];
    for (int i = 0; i < m->n_layer; i++) {
        const keel_model_layer *l = &m->layer[i];
        shape_cell(shape, m, i);
        w->name = at_least(w->name, keel_name_width(l->name) + INDENT * (size_t)depth);
        w->kind = at_least(w->kind, strlen(l->kind->type.name));
        w->dims = at_least(w->dims, strlen(shape));
        w->number = at_least(w->number, strlen(keel_group_digits(params, layer_params(m, i))));
        if (shows_inner(l)) measure(l->inner, depth + 1, w);
    }
}

/* A frozen model may have layers that were unfrozen after it. */
static bool is_frozen(const keel_model_layer *l)
{
    if (l->trainable || !keel_model_layer_is_model(l)) return !l->trainable;
    for (int i = 0; i < l->inner->n_layer; i++)
        if (!is_frozen(&l->inner->layer[i]) && layer_params(l->inner, i) > 0) return false;
    return true;
}

static void layer_lines(keel_text *t, const keel_model *m, int depth, const table *w)
{
    char shape[96], params[28];
    for (int i = 0; i < m->n_layer; i++) {
        const keel_model_layer *l = &m->layer[i];
        shape_cell(shape, m, i);
        keel_text_add(t, "%*s", INDENT * depth, "");
        keel_text_add_name(t, (size_t)(w->name - INDENT * depth), l->name);
        keel_text_add(t, "  %-*s  %-*s  %*s", w->kind, l->kind->type.name, w->dims, shape,
                      w->number, keel_group_digits(params, layer_params(m, i)));
        if (m->functional && l->kind->emit) {
            keel_text_add(t, "  ");
            connected_cell(t, m, i);
        }
        if (is_frozen(l)) keel_text_add(t, "  (frozen)");
        if (w->differ && l->compute != KEEL_FLOAT32)
            keel_text_add(t, "  (%s)", keel_policy_name(l->compute));
        keel_text_add(t, "\n");
        if (shows_inner(l)) layer_lines(t, l->inner, depth + 1, w);
    }
}

keel_status keel_model_summary(const keel_model *m, char **out)
{
    keel_text t = { 0 };
    const char *policy = keel_model_dtype_policy(m);
    keel_model_pull(m, KEEL_LIVE_NUMBERS);
    table w = { 5, 5, 12, 10, strstr(policy, " and ") != NULL };
    measure(m, 0, &w);
    keel_text_add(&t, "Model: \"");
    keel_text_add_name(&t, 0, keel_model_name(m));
    keel_text_add(&t, "\" (%s)\n", m->sequential ? "Sequential" : "Functional");
    keel_text_add(&t, "%-*s  %-*s  %-*s  %*s%s\n", w.name, "Layer", w.kind, "Class", w.dims,
                  "Output shape", w.number, "Parameters", m->functional ? "  Connected to" : "");
    layer_lines(&t, m, 0, &w);
    totals(&t, m);
    keel_text_add(&t, "Dtype policy: %s\n", policy);
    optimizer_lines(&t, m);
    return give(&t, out);
}

/* ---- the page about a layer class ------------------------------------------------------------ */

const char *keel_layer_class(int i)
{
    for (int k = 0; i >= 0 && keel_layers[k]; k++)
        if (!keel_layers[k]->operation && i-- == 0) return keel_layers[k]->type.name;
    return NULL;
}

keel_status keel_layer_help(const char *layer, char **out)
{
    keel_text t = { 0 };
    const keel_layer *l = keel_layer_find(layer);
    if (!l)
        return keel_fail(KEEL_EARG, "there is no layer class '%s'; 'keel layers' lists all of them",
                         layer);
    keel_type_lines(&t, &l->type);
    keel_text_add(&t, "  %-28s default %-18s %s\n", "name", "null", "null: made from the class");
    if (l->emit)
        keel_text_add(&t, "  %-28s default %-18s %s\n", "trainable", "true",
                      "false: training leaves its weights alone");
    else
        keel_text_add(&t, "  %-28s %-26s %s\n", "shape", "must be given",
                      "of one row; or batch_shape, with the batch (null) first");
    return give(&t, out);
}
