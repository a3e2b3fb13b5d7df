/* Writes a model as config.json. A loaded configuration is written back unchanged, except for what
 * may have changed (frozen layers, compile_config), so nothing is lost that Keel does not use. */
#include "base/memory.h"
#include "base/registered.h"
#include "model/parts.h"
#include <string.h>

enum { DEPTH_MAX = 32 }; /* of the arguments of a call */

static keel_status no_memory(void)
{
    return keel_fail(KEEL_ENOMEM, "out of memory writing the model's configuration");
}

/* jansson's setters take the value over and fail if it is NULL, so one test covers both. */
static bool set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static bool push(json_t *list, json_t *value)
{
    return json_array_append_new(list, value) == 0;
}

static keel_status inner_json(const keel_model *m, json_t **out); /* below */
static keel_status layer_json(const keel_model *m, int layer, json_t **out);

static json_t *shape_json(const keel_shape *s, int64_t batch)
{
    json_t *dims = json_array();
    bool ok = push(dims, batch < 0 ? json_null() : json_integer(batch));
    for (int i = 0; ok && i < s->rank; i++) ok = push(dims, keel_dim_json(s->dim[i]));
    if (ok) return dims;
    json_decref(dims);
    return NULL;
}

/* Of inputs [from, end) of a call. */
static json_t *shapes_json(const keel_model *m, const keel_model_node *n, int from, int end)
{
    json_t *shapes = json_array();
    for (int i = from; i < end; i++)
        if (!push(shapes, shape_json(&m->symbol[n->in[i]].spec.shape, -1))) {
            json_decref(shapes);
            return NULL;
        }
    return shapes;
}

/* The shapes of the first call's inputs, with which Keras builds the layer. */
static json_t *build_config(const keel_model *m, const keel_model_node *n)
{
    const keel_layer *kind = m->layer[n->layer].kind;
    if (keel_model_calls_with_list(kind))
        return json_pack("{s:o}", "input_shape", shapes_json(m, n, 0, n->n_in));
    json_t *first = shape_json(&m->symbol[n->in[0]].spec.shape, -1);
    if (!kind->takes_states || n->n_in == 1) return json_pack("{s:o}", "input_shape", first);
    return json_pack("{s:{s:o,s:o}}", "shapes_dict", "sequences_shape", first,
                     "initial_state_shape", shapes_json(m, n, 1, n->n_in));
}

static const keel_model_node *first_node(const keel_model *m, int layer)
{
    for (int k = 0; k < m->n_node; k++)
        if (m->node[k].layer == layer) return &m->node[k];
    return NULL;
}

/* The type in a file: what Keel computes in float64 is float32 there. */
static keel_dtype fed(const keel_spec *s)
{
    return keel_dtype_is_real(s->dtype) ? KEEL_FLOAT32 : s->dtype;
}

static keel_status plain_json(const keel_model *m, int layer, json_t **out)
{
    const keel_model_layer *l = &m->layer[layer];
    const keel_model_node *first = first_node(m, layer);
    const keel_layer_common common = { .name = l->name,
                                       .trainable = l->trainable,
                                       .compute = l->compute,
                                       .shape = l->input.shape,
                                       .dtype = fed(&l->input),
                                       .batch = l->batch,
                                       .activity = l->activity };
    json_t *config = NULL;
    KEEL_TRY(keel_layer_config(l->kind, l->args, &common, &config));
    for (int k = 0; l->kind->held && l->kind->held[k]; k++) {
        json_t *held = NULL;
        const keel_status s = layer_json(l->inner, k, &held);
        if (s < 0 || !set(config, l->kind->held[k], held)) {
            json_decref(config);
            return s < 0 ? s : no_memory();
        }
    }
    json_t *list = l->kind->held_list ? json_array() : NULL;
    for (int k = 0; list && k < l->inner->n_layer; k++) {
        json_t *held = NULL;
        const keel_status s = layer_json(l->inner, k, &held);
        if (s < 0 || !push(list, held)) {
            json_decref(list);
            json_decref(config);
            return s < 0 ? s : no_memory();
        }
    }
    if (l->kind->held_list && !set(config, l->kind->held_list, list)) {
        json_decref(config);
        return no_memory();
    }
    const keel_registered *registered = l->kind->type.registered;
    json_t *v = json_pack("{s:s?,s:s,s:o,s:s?}", "module", l->kind->type.module, "class_name",
                          l->kind->exported ? l->kind->exported : l->kind->type.name, "config",
                          config, "registered_name", registered ? registered->name : NULL);
    if (v && l->kind->operation && !set(v, "registered_name", json_string(l->kind->type.name))) {
        json_decref(v);
        return no_memory();
    }
    if (!v || (l->n_weight && first && !set(v, "build_config", build_config(m, first)))) {
        json_decref(v);
        return no_memory();
    }
    *out = v;
    return KEEL_OK;
}

static keel_status layer_json(const keel_model *m, int layer, json_t **out)
{
    const keel_model_layer *l = &m->layer[layer];
    if (!keel_model_layer_is_model(l)) return plain_json(m, layer, out);
    KEEL_TRY(inner_json(l->inner, out));
    json_t *config = json_object_get(*out, "config");
    if (set(config, "name", json_string(l->name)) &&
        set(config, "trainable", json_boolean(l->trainable)))
        return KEEL_OK;
    json_decref(*out);
    *out = NULL;
    return no_memory();
}

static json_t *history(const keel_model *m, keel_symbol s)
{
    const keel_model_node *n = keel_model_maker(m, s);
    return json_pack("[s,i,i]", m->layer[n->layer].name, n->index, m->symbol[s].output);
}

static json_t *tensor_json(const keel_model *m, keel_symbol s)
{
    const keel_dtype made_in = m->layer[keel_model_maker(m, s)->layer].compute;
    return json_pack("{s:s,s:{s:o,s:s,s:o}}", "class_name", "__keras_tensor__", "config", "shape",
                     shape_json(&m->symbol[s].spec.shape, -1), "dtype",
                     made_in != KEEL_FLOAT32 ? keel_dtype_name(made_in)
                                             : keel_dtype_name(fed(&m->symbol[s].spec)),
                     "keras_history", history(m, s));
}

/* The same of a layer that may be a model. */
static bool is_list(const keel_model *m, int layer)
{
    const keel_model_layer *l = &m->layer[layer];
    return keel_model_layer_is_model(l) ? l->inner->n_input > 1
                                        : keel_model_calls_with_list(l->kind);
}

/* The arguments of an operation, with tensors in place of the numbers of inputs. */
static json_t *with_tensors(const keel_model *m, const keel_model_node *n, const json_t *v)
{
    const json_t *in = json_object_get(v, KEEL_CALL_VALUE);
    const char *key;
    json_t *child, *copy;
    size_t i;
    bool ok = true;
    if (in) return tensor_json(m, n->in[json_integer_value(in)]);
    if (!json_is_object(v) && !json_is_array(v)) return json_deep_copy(v);
    copy = json_is_object(v) ? json_object() : json_array();
    json_object_foreach((json_t *)v, key, child) ok =
        ok && set(copy, key, with_tensors(m, n, child));
    json_array_foreach((json_t *)v, i, child) ok = ok && push(copy, with_tensors(m, n, child));
    if (ok) return copy;
    json_decref(copy);
    return NULL;
}

/* Inputs [from, end) of a call. */
static json_t *tensors_json(const keel_model *m, const keel_model_node *n, int from, int end)
{
    json_t *tensors = json_array();
    for (int i = from; i < end; i++)
        if (!push(tensors, tensor_json(m, n->in[i]))) {
            json_decref(tensors);
            return NULL;
        }
    return tensors;
}

static json_t *call_json(const keel_model *m, const keel_model_node *n)
{
    if (n->call) return with_tensors(m, n, n->call);
    const bool states = m->layer[n->layer].kind->takes_states && n->n_in > 1;
    json_t *tensors = tensors_json(m, n, 0, states ? 1 : n->n_in);
    json_t *kwargs = n->inference ? json_pack("{s:b}", "training", 0) : json_object();
    if (!tensors || !kwargs ||
        (states && !set(kwargs, "initial_state", tensors_json(m, n, 1, n->n_in)))) {
        json_decref(tensors);
        json_decref(kwargs);
        return NULL;
    }
    if (is_list(m, n->layer)) return json_pack("{s:[o],s:o}", "args", tensors, "kwargs", kwargs);
    return json_pack("{s:o,s:o}", "args", tensors, "kwargs", kwargs);
}

/* An input or output of the model; there, calls of a Functional model count from 1. */
static json_t *end_json(const keel_model *m, keel_symbol s)
{
    const keel_model_node *n = keel_model_maker(m, s);
    const keel_model_layer *l = &m->layer[n->layer];
    return json_pack("[s,i,i]", l->name, n->index + (l->kind == &keel_kind_functional),
                     m->symbol[s].output);
}

static json_t *ends_json(const keel_model *m, const keel_symbol *list, int n)
{
    if (n == 1) return end_json(m, list[0]);
    json_t *all = json_array();
    for (int i = 0; i < n; i++)
        if (!push(all, end_json(m, list[i]))) {
            json_decref(all);
            return NULL;
        }
    return all;
}

/* name and inbound_nodes: what a layer of a Functional model has besides its config. */
static keel_status wire(const keel_model *m, json_t *layers)
{
    for (int i = 0; i < m->n_layer; i++) {
        json_t *v = json_array_get(layers, (size_t)i);
        if (!set(v, "name", json_string(m->layer[i].name)) ||
            !set(v, "inbound_nodes", json_array()))
            return no_memory();
    }
    for (int k = 0; k < m->n_node; k++) {
        const keel_model_node *n = &m->node[k];
        json_t *v = json_array_get(layers, (size_t)n->layer);
        if (m->layer[n->layer].kind->emit &&
            !push(json_object_get(v, "inbound_nodes"), call_json(m, n)))
            return no_memory();
    }
    return KEEL_OK;
}

static keel_status model_json(const keel_model *m, json_t *layers, json_t **out)
{
    const keel_model_symbol *input = &m->symbol[m->input[0]];
    const int64_t batch = m->layer[m->node[input->node].layer].batch;
    json_t *root;
    if (m->functional)
        root = json_pack("{s:s,s:s,s:{s:s,s:b,s:O,s:o,s:o},s:s,s:{s:n}}", "module",
                         "keras.src.models.functional", "class_name", "Functional", "config",
                         "name", m->name, "trainable", 1, "layers", layers, "input_layers",
                         ends_json(m, m->input, m->n_input), "output_layers",
                         ends_json(m, m->output, m->n_output), "registered_name", "Functional",
                         "build_config", "input_shape");
    else
        root =
            json_pack("{s:s,s:s,s:{s:s,s:b,s:O,s:o},s:n,s:{s:o}}", "module", "keras", "class_name",
                      "Sequential", "config", "name", m->name, "trainable", 1, "layers", layers,
                      "build_input_shape", shape_json(&input->spec.shape, batch), "registered_name",
                      "build_config", "input_shape", shape_json(&input->spec.shape, batch));
    if (root && m->compute != KEEL_FLOAT32 &&
        !set(json_object_get(root, "config"), "dtype", keel_policy_json(m->compute))) {
        json_decref(root);
        root = NULL;
    }
    if (!root) return no_memory();
    *out = root;
    return KEEL_OK;
}

static keel_status built_json(const keel_model *m, json_t **out)
{
    keel_status s = KEEL_OK;
    json_t *layers = json_array();
    for (int i = 0; i < m->n_layer; i++) {
        json_t *v = NULL;
        if ((s = layer_json(m, i, &v)) < 0) goto out;
        if (!push(layers, v)) {
            s = no_memory();
            goto out;
        }
    }
    if (m->functional && (s = wire(m, layers)) < 0) goto out;
    s = model_json(m, layers, out);
out:
    json_decref(layers);
    return s;
}

/* Whether a config names that policy, or nothing where it is float32. */
static bool is_policy(const json_t *dtype, keel_dtype compute)
{
    keel_dtype found = KEEL_FLOAT32;
    const char *name = json_string_value(dtype);
    if (!name) name = json_string_value(json_object_get(json_object_get(dtype, "config"), "name"));
    if (name) keel_policy_find(name, &found); /* a type of integers stays as it is */
    return found == compute;
}

/* Calls state the dtype of the tensors they take: {"class_name": "__keras_tensor__", "config":
 * {"dtype": ..., "keras_history": [layer, ...]}}, at any depth of their arguments. */
static bool rename_tensors(const keel_model *m, json_t *v, int depth)
{
    const char *key,
        *name = json_string_value(json_array_get(json_object_get(v, "keras_history"), 0));
    const int layer = name ? keel_model_find_layer(m, name) : -1;
    json_t *child;
    size_t i;
    bool ok = true;
    if (depth > DEPTH_MAX) return true;
    if (layer >= 0 && json_object_get(v, "dtype"))
        ok = set(v, "dtype", json_string(keel_dtype_name(m->layer[layer].compute)));
    json_object_foreach(v, key, child) ok = ok && rename_tensors(m, child, depth + 1);
    json_array_foreach(v, i, child) ok = ok && rename_tensors(m, child, depth + 1);
    return ok;
}

static bool update_layers(const keel_model *m, json_t *layers, bool *all_frozen);

/* The same for the layers that a layer holds. */
static bool update_held(const keel_model_layer *l, json_t *config)
{
    bool ok = true, ignored = true;
    if (l->kind->held_list)
        return update_layers(l->inner, json_object_get(config, l->kind->held_list), &ignored);
    for (int k = 0; ok && l->kind->held[k]; k++) {
        json_t *list = json_pack("[O]", json_object_get(config, l->kind->held[k]));
        ok = list && update_layers(l->inner, list, &ignored);
        json_decref(list);
    }
    return ok;
}

/* Updates what may have changed in the layers of a loaded model: `trainable` and the policy. */
static bool update_layers(const keel_model *m, json_t *layers, bool *all_frozen)
{
    json_t *v;
    size_t i;
    bool changed = false, ok = true;
    json_array_foreach(layers, i, v)
    {
        json_t *config = json_object_get(v, "config");
        const char *name = json_string_value(json_object_get(config, "name"));
        const int layer = name ? keel_model_find_layer(m, name) : -1;
        const keel_model_layer *l = layer < 0 ? NULL : &m->layer[layer];
        bool inside = true;
        if (!l || !l->kind->emit || l->kind->operation) continue;
        *all_frozen = *all_frozen && !l->trainable;
        if (l->kind->held || l->kind->held_list) ok = ok && update_held(l, config);
        if (keel_model_layer_is_model(l))
            ok = ok && update_layers(l->inner, json_object_get(config, "layers"), &inside);
        /* Absent is true, and some classes do not take it. */
        if (json_is_false(json_object_get(config, "trainable")) == l->trainable)
            ok = ok && set(config, "trainable", json_boolean(l->trainable));
        if (keel_model_layer_is_model(l) || is_policy(json_object_get(config, "dtype"), l->compute))
            continue;
        ok = ok && set(config, "dtype", keel_policy_json(l->compute));
        changed = true;
    }
    json_array_foreach(layers, i, v)
    {
        if (changed) ok = ok && rename_tensors(m, json_object_get(v, "inbound_nodes"), 0);
    }
    return ok;
}

/* The loaded configuration, with the current frozen layers and policies. */
static keel_status loaded_json(const keel_model *m, json_t **out)
{
    json_t *root = json_deep_copy(m->file_config);
    json_t *config = json_object_get(root, "config");
    bool all_frozen = true;
    bool ok = root && update_layers(m, json_object_get(config, "layers"), &all_frozen);
    if (!is_policy(json_object_get(config, "dtype"), m->compute))
        ok = ok && set(config, "dtype", keel_policy_json(m->compute));
    if (json_is_false(json_object_get(config, "trainable")) && !all_frozen)
        ok = ok && set(config, "trainable", json_true());
    if (!ok) {
        json_decref(root);
        return no_memory();
    }
    *out = root;
    return KEEL_OK;
}

/* A model inside another. What was loaded stays as it was, but not how it was compiled. */
static keel_status inner_json(const keel_model *m, json_t **out)
{
    if (!m->file_config) return built_json(m, out);
    KEEL_TRY(loaded_json(m, out));
    json_object_del(*out, "compile_config");
    return KEEL_OK;
}

keel_status keel_model_to_config(const keel_model *m, json_t **out)
{
    json_t *root = NULL, *compile = NULL;
    if (m->file_config)
        KEEL_TRY(loaded_json(m, &root));
    else
        KEEL_TRY(built_json(m, &root));
    if (m->compiled.given) {
        const keel_status s = keel_compiled_config(m, &compile);
        if (s < 0 || !set(root, "compile_config", compile)) {
            json_decref(root);
            return s < 0 ? s : no_memory();
        }
    }
    *out = root;
    return KEEL_OK;
}
