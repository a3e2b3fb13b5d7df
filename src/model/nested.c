/* Models as layers: read from a configuration, or added by a call. The weights of a model inside
 * another are in the list of the outermost; everything else stays its own. */
#include "base/memory.h"
#include "model/parts.h"
#include <string.h>

/* Never called: a model emits the calls inside it (emit.c). */
static keel_status emit(keel_emit *e)
{
    return keel_fail(KEEL_EARG, "'%s' is a model", e->name);
}

const keel_layer keel_kind_functional = {
    .type = { .name = "Functional",
              .module = "keras.src.models.functional",
              .help = "A model with any connections, as a layer." },
    .min_inputs = 1,
    .max_inputs = -1,
    .emit = emit,
};

const keel_layer keel_kind_sequential = {
    .type = { .name = "Sequential", .module = "keras", .help = "A chain of layers, as a layer." },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};

static int depth_of(const keel_model *m)
{
    int depth = 1;
    for (; m->outer; m = m->outer) depth++;
    return depth;
}

/* How many levels of models m has: 1 if no model is inside. */
static int height_of(const keel_model *m)
{
    int height = 0;
    for (int i = 0; i < m->n_layer; i++) {
        const int h = m->layer[i].inner ? height_of(m->layer[i].inner) : 0;
        if (h > height) height = h;
    }
    return height + 1;
}

/* Makes that model the last layer of m. */
static keel_status add_layer(keel_model *m, keel_model *inner, const char *name, bool trainable)
{
    keel_model_layer l = { .kind =
                               inner->sequential ? &keel_kind_sequential : &keel_kind_functional,
                           .trainable = trainable,
                           .batch = -1 };
    if (keel_model_find_layer(m, name) >= 0)
        return keel_fail(KEEL_EARG, "two layers are named '%s': names must differ", name);
    if (strchr(name, '/') || !*name)
        return keel_fail(KEEL_EARG, "name '%s': a layer's name is a text without '/'", name);
    if (!(l.name = keel_strdup(name))) return KEEL_ENOMEM;
    const keel_status s = keel_model_put_layer(m, &l);
    if (s < 0)
        keel_free(l.name);
    else
        m->layer[m->n_layer - 1].inner = inner;
    return s;
}

keel_status keel_model_read_inner(keel_model *m, const json_t *v, int *layer)
{
    keel_status s = KEEL_OK;
    keel_model *inner = NULL;
    const json_t *config = json_object_get(v, "config");
    const char *name = json_string_value(json_object_get(config, "name"));
    const keel_model_mark mark = keel_model_where(m);
    if (!name) return keel_fail(KEEL_EFORMAT, "a model inside the model without a name");
    if (depth_of(m) >= KEEL_MODELS_DEEP)
        return keel_fail(KEEL_EUNSUP, "models inside models are nested more than %d deep",
                         KEEL_MODELS_DEEP);
    KEEL_TRY(keel_model_begin(&inner, name, m->dtype, m->seed));
    inner->outer = m;
    if ((s = keel_model_from_config(inner, v)) < 0) {
        s = keel_fail_within(s, "layer '%s'", name);
        goto out;
    }
    s = add_layer(m, inner, name, !json_is_false(json_object_get(config, "trainable")));
    if (s < 0) goto out;
    *layer = m->n_layer - 1;
    return KEEL_OK;
out:
    keel_model_back(m, mark); /* weights first, because the layers inside have them */
    keel_model_destroy(inner);
    return s;
}

/* ---- layers that a layer holds --------------------------------------------------------------- */

static keel_status create_held(keel_model *m, bool made, keel_model **out)
{
    if (depth_of(m) >= KEEL_MODELS_DEEP)
        return keel_fail(KEEL_EUNSUP, "layers inside layers are nested more than %d deep",
                         KEEL_MODELS_DEEP);
    KEEL_TRY(keel_model_create(out, NULL, m->dtype, m->seed));
    (*out)->outer = m;
    (*out)->held = true;
    (*out)->made = made;
    return KEEL_OK;
}

keel_status keel_model_make_held(keel_model *m, int layer, const char *key, const char *class_name,
                                 json_t *config)
{
    keel_status s = config ? KEEL_OK : keel_fail(KEEL_ENOMEM, "out of memory making '%s'", key);
    keel_model_layer *l = &m->layer[layer], *made;
    int k;
    if (s >= 0 && !l->inner) s = create_held(m, true, &l->inner);
    if (s >= 0) s = keel_model_new_layer(l->inner, class_name, config, &k);
    json_decref(config);
    if (s < 0) return s;
    made = &l->inner->layer[k];
    made->key = key;
    made->trainable = l->trainable;
    made->compute = l->compute;
    return KEEL_OK;
}

keel_status keel_model_read_held(keel_model *m, const keel_layer *kind, const json_t *config,
                                 keel_model **out)
{
    keel_status s = KEEL_OK;
    keel_model *held = NULL;
    const keel_model_mark mark = keel_model_where(m);
    const json_t *list = kind->held_list ? json_object_get(config, kind->held_list) : NULL;
    const size_t listed = json_array_size(list);
    if (kind->held_list && (listed == 0 || listed > KEEL_HELD_IN_LIST_MAX))
        return keel_fail(KEEL_EUNSUP, "%s: a list of 1 to %d layers is expected", kind->held_list,
                         KEEL_HELD_IN_LIST_MAX);
    KEEL_TRY(create_held(m, false, &held));
    held->list = kind->held_list;
    for (int k = 0; list ? k < (int)listed : kind->held[k] != NULL; k++) {
        const char *key = list ? keel_held_in_list(k) : kind->held[k];
        const json_t *v = list ? json_array_get(list, (size_t)k) : json_object_get(config, key);
        int layer;
        s = json_is_object(v) ? keel_model_read_layer(held, v, &layer)
                              : keel_fail(KEEL_EARG, "expected a layer, {class_name, config}");
        if (s >= 0 && (!held->layer[k].kind->emit || held->layer[k].kind->operation))
            s = keel_fail(KEEL_EARG, "a %s cannot be held", held->layer[k].kind->type.name);
        if (s < 0) {
            s = s == KEEL_ENOMEM ? s
                                 : keel_fail_within(s, "%s%s%s", list ? kind->held_list : "",
                                                    list ? " " : "", key);
            goto out;
        }
        held->layer[k].key = !list && kind->held_as ? kind->held_as[k] : key;
    }
    *out = held;
    return KEEL_OK;
out:
    keel_model_back(m, mark); /* weights first, because models inside have them */
    keel_model_destroy(held);
    return s;
}

/* ---- all layers ------------------------------------------------------------------------------ */

static int count_all(const keel_model *m)
{
    int n = m->n_layer;
    for (int i = 0; i < m->n_layer; i++)
        if (m->layer[i].inner) n += count_all(m->layer[i].inner);
    return n;
}

static int collect(const keel_model *m, keel_model_layer **out, int n)
{
    for (int i = 0; i < m->n_layer; i++) {
        out[n++] = &m->layer[i];
        if (m->layer[i].inner) n = collect(m->layer[i].inner, out, n);
    }
    return n;
}

keel_status keel_model_all_layers(const keel_model *m, keel_model_layer ***out, int *count)
{
    keel_model_layer **all = keel_calloc((size_t)count_all(m), sizeof *all);
    if (!all) return KEEL_ENOMEM;
    *count = collect(m, all, 0);
    *out = all;
    return KEEL_OK;
}

bool keel_model_find_label(const keel_model *m, const char *label, keel_model **in, int *layer)
{
    const size_t length = strcspn(label, "/");
    for (int i = 0; i < m->n_layer; i++) {
        const keel_model_layer *l = &m->layer[i];
        if (strncmp(l->name, label, length) || l->name[length]) continue;
        if (label[length])
            return l->inner && keel_model_find_label(l->inner, label + length + 1, in, layer);
        *in = (keel_model *)m;
        *layer = i;
        return true;
    }
    return false;
}

/* ---- taking a model in ----------------------------------------------------------------------- */

static void shift_weights(keel_model *m, int by)
{
    for (int i = 0; i < m->n_layer; i++) {
        for (int k = 0; k < m->layer[i].n_weight; k++) m->layer[i].weight[k] += by;
        if (m->layer[i].inner) shift_weights(m->layer[i].inner, by);
    }
}

static keel_status check(const keel_model *m, const keel_model *inner)
{
    if (!inner->finished)
        return keel_fail(KEEL_EARG, "the model '%s' is not finished, so it cannot be a layer",
                         inner->name);
    if (inner->outer || inner == m)
        return keel_fail(KEEL_EARG, "the model '%s' is a layer already", inner->name);
    if (inner->dtype != m->dtype)
        return keel_fail(KEEL_EARG, "the model '%s' is of %s, and '%s' of %s", inner->name,
                         keel_dtype_name(inner->dtype), m->name ? m->name : "this model",
                         keel_dtype_name(m->dtype));
    if (depth_of(m) + height_of(inner) > KEEL_MODELS_DEEP)
        return keel_fail(KEEL_EUNSUP, "models inside models are nested more than %d deep",
                         KEEL_MODELS_DEEP);
    return KEEL_OK;
}

keel_status keel_model_take_in(keel_model *m, keel_model *inner, const keel_model_call_of *call,
                               keel_symbol *out)
{
    keel_status s = KEEL_OK;
    const int first = m->n_weight, n = inner->n_weight;
    KEEL_TRY(check(m, inner));
    for (int i = 0; i < n; i++) KEEL_TRY(keel_model_reserve_weight(m, first + i));
    KEEL_TRY(add_layer(m, inner, inner->name, true));
    for (int i = 0; i < n; i++) m->weight[first + i] = inner->weight[i];
    m->n_weight += n;
    inner->n_weight = 0;
    inner->outer = m;
    shift_weights(inner, first);
    s = keel_model_new_node(m, m->n_layer - 1, call, out);
    if (s >= 0) {
        keel_compiled_free(&inner->compiled); /* the outer model is the one that is compiled */
        return KEEL_OK;
    }
    shift_weights(inner, -first); /* the caller gets it back unchanged */
    inner->outer = NULL;
    inner->n_weight = n;
    m->n_weight = first;
    m->layer[m->n_layer - 1].inner = NULL;
    keel_model_back(m, (keel_model_mark){ m->n_layer - 1, first, m->n_node });
    return s;
}
