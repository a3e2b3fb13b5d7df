/* What follows from the order of the layers through all models inside: names of layers and weights,
 * paths in model.weights.h5, streams of random numbers, the order of the weights, and which of them
 * are trained. Keras walks layers and, inside a model, its layers, so that is the order of its
 * variables. */
#include "base/memory.h"
#include "base/text.h"
#include "model/parts.h"
#include <string.h>

/* Replaces *place by the text, which is taken over. */
static keel_status put(char **place, keel_text *t)
{
    if (t->failed) {
        keel_text_free(t);
        return KEEL_ENOMEM;
    }
    keel_free(*place);
    *place = t->data;
    *t = (keel_text){ 0 };
    return KEEL_OK;
}

static keel_status name_weights(keel_model *root, const keel_model_layer *l)
{
    const char *const in = l->kind->weights_in;
    for (int k = 0; k < l->n_weight; k++) {
        keel_model_weight *w = &root->weight[l->weight[k]];
        const char *own = strrchr(w->info.name, '/');
        keel_text name = { 0 }, path = { 0 };
        char *was = (char *)w->info.name;
        keel_text_add(&name, "%s%s", l->label, own);
        KEEL_TRY(put(&was, &name));
        w->info.name = was;
        keel_text_add(&path, "%s%s%s/vars", l->path ? l->path : l->label, in ? "/" : "",
                      in ? in : "");
        if (w->besides)
            keel_text_add(&path, "%s", strrchr(was, '/'));
        else
            keel_text_add(&path, "/%d", k + l->kind->first_again);
        KEEL_TRY(put(&w->path, &path));
    }
    return KEEL_OK;
}

/* Keras's file has no groups for the input of a Sequential model or for operations. */
static bool in_file(const keel_model *m, const keel_model_layer *l)
{
    return !l->kind->operation && (!m->sequential || l->kind->emit);
}

/* "layers/dense", "layers/dense_1": by class, in order, separately in each model; a held layer has
 * its key, or its class and number if it is held in a list. */
static keel_status name_path(const keel_model *m, const char *around, json_t *used,
                             keel_model_layer *l)
{
    char stem[80];
    keel_text path = { 0 };
    if (m->held && !m->list) {
        keel_text_add(&path, "%s/%s", around, l->key);
        return put(&l->path, &path);
    }
    keel_snake_case(stem, sizeof stem, l->kind->type.name);
    const int n = (int)json_integer_value(json_object_get(used, stem));
    if (json_object_set_new(used, stem, json_integer(n + 1)))
        return keel_fail(KEEL_ENOMEM, "out of memory naming weights");
    keel_text_add(&path, "%s%s%s/%s", around ? around : "", around ? "/" : "",
                  m->list ? m->list : "layers", stem);
    if (n) keel_text_add(&path, "_%d", n);
    return put(&l->path, &path);
}

/* Names the layers of a model. label and path: of the model; NULL: it is the outermost. */
static keel_status name_layers(keel_model *m, const char *label, const char *path)
{
    keel_status s = KEEL_OK;
    json_t *used = json_object();
    if (!used) return keel_fail(KEEL_ENOMEM, "out of memory naming weights");
    for (int i = 0; i < m->n_layer; i++) {
        keel_model_layer *l = &m->layer[i];
        keel_text name = { 0 };
        keel_text_add(&name, "%s%s%s", label ? label : "", label ? "/" : "", l->name);
        if ((s = put(&l->label, &name)) < 0) goto out;
        if (in_file(m, l) && (s = name_path(m, path, used, l)) < 0) goto out;
        if ((s = name_weights(keel_model_outermost(m), l)) < 0) goto out;
        if (l->inner && (s = name_layers(l->inner, l->label, l->path)) < 0) goto out;
    }
out:
    json_decref(used);
    return s;
}

static int count_layers(const keel_model *m)
{
    int n = m->n_layer;
    for (int i = 0; i < m->n_layer && n <= KEEL_MODEL_LAYERS_MAX; i++)
        if (m->layer[i].inner) n += count_layers(m->layer[i].inner);
    return n;
}

/* May the layers in a layer be trained? Those of a model say it themselves: freezing a model
 * freezes each, and one that is let go after that trains, as in Keras. */
static bool passes_on(const keel_model_layer *l, bool trainable)
{
    return trainable && (l->trainable || keel_model_layer_is_model(l));
}

typedef struct counts {
    int layer, weight;
} counts;

static void put_in_order(keel_model *m, bool trainable, keel_model_weight *to, counts *n)
{
    keel_model *root = keel_model_outermost(m);
    for (int i = 0; i < m->n_layer; i++) {
        keel_model_layer *l = &m->layer[i];
        l->stream = n->layer++;
        for (int k = 0; k < l->n_weight; k++) {
            keel_model_weight *w = &to[n->weight];
            *w = root->weight[l->weight[k]];
            w->trainable = trainable && l->trainable && !w->state;
            l->weight[k] = n->weight++;
        }
        if (l->inner) put_in_order(l->inner, passes_on(l, trainable), to, n);
    }
}

static void mark_trainable(keel_model *m, bool trainable)
{
    keel_model *root = keel_model_outermost(m);
    for (int i = 0; i < m->n_layer; i++) {
        const keel_model_layer *l = &m->layer[i];
        for (int k = 0; k < l->n_weight; k++) {
            keel_model_weight *w = &root->weight[l->weight[k]];
            w->trainable = trainable && l->trainable && !w->state;
        }
        if (l->inner) mark_trainable(l->inner, passes_on(l, trainable));
    }
}

void keel_model_mark_trainable(keel_model *m)
{
    mark_trainable(m, true);
}

keel_status keel_model_number(keel_model *m)
{
    keel_status s = KEEL_OK;
    counts n = { 0 };
    keel_model_weight *weights = keel_calloc((size_t)m->n_weight, sizeof *weights);
    if (!weights) return KEEL_ENOMEM;
    if ((s = name_layers(m, NULL, NULL)) < 0) goto out;
    if (count_layers(m) > KEEL_MODEL_LAYERS_MAX) {
        s = keel_fail(KEEL_EUNSUP, "more than %d layers", KEEL_MODEL_LAYERS_MAX);
        goto out;
    }
    put_in_order(m, true, weights, &n);
    for (int i = 0; i < n.weight; i++) m->weight[i] = weights[i];
out:
    keel_free(weights);
    return s;
}

void keel_model_variable_path(const keel_model *m, int weight, keel_text *out)
{
    const keel_model_weight *w = &m->weight[weight];
    const keel_model *in = w->owner;
    const char *name = w->info.name, *model = NULL;
    while (in->held) in = in->outer;
    if (!in->outer) model = in->name;
    for (int i = 0; in->outer && i < in->outer->n_layer; i++) {
        const keel_model_layer *l = &in->outer->layer[i];
        if (l->inner != in) continue;
        model = l->name;
        name += strlen(l->label) + 1;
    }
    if (in->sequential)
        keel_text_add(out, "%s/%s", model, name);
    else
        keel_text_add(out, "%s", name);
}
