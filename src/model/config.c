/* config.json: a Sequential or Functional model as Keras writes it, into a model. Its layers are
 * read by config_layer.c; config_write.c is the way back. */
#include "base/memory.h"
#include "model/parts.h"
#include <stdio.h>
#include <string.h>

enum {
    NESTED_MAX = 8,
    KEYS_MAX = 64,
    CALLS_MAX = 1 << 18,
    INPUTS_OF_CALL_MAX = 1 << 12,
    OUTPUTS_OF_CALL_MAX = 1 << 12
};

static const char *text_at(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

/* ---- Sequential ------------------------------------------------------------------------------ */

/* For a model that Keras built from its first data: Keras stores the shape beside the layers. */
static keel_status add_input(keel_model *m, const json_t *root, keel_symbol *out)
{
    const json_t *shape = json_object_get(json_object_get(root, "config"), "build_input_shape");
    int layer;
    if (!json_is_array(shape))
        shape = json_object_get(json_object_get(root, "build_config"), "input_shape");
    if (!json_is_array(shape))
        return keel_fail(KEEL_EUNSUP,
                         "the model has no input shape: add keras.Input(shape) before saving it");
    json_t *config = json_pack("{s:O}", "batch_shape", shape);
    if (!config) return keel_fail(KEEL_ENOMEM, "out of memory reading the model");
    const keel_status s = keel_model_new_layer(m, "InputLayer", config, &layer);
    json_decref(config);
    return s < 0 ? s : keel_model_new_node(m, layer, &(keel_model_call_of){ 0 }, out);
}

static keel_status read_sequential(keel_model *m, const json_t *root, const json_t *layers)
{
    keel_symbol last = -1;
    size_t i;
    const json_t *v;
    json_array_foreach(layers, i, v)
    {
        const char *class_name = text_at(v, "class_name");
        const bool is_input = class_name && !strcmp(class_name, "InputLayer");
        int layer;
        if (i == 0 && !is_input) KEEL_TRY(add_input(m, root, &last));
        if (i > 0 && is_input)
            return keel_fail(KEEL_EFORMAT, "layers[%zu]: an InputLayer in the middle", i);
        KEEL_TRY(keel_model_read_layer(m, v, &layer));
        const keel_model_call_of call = { .in = &last, .n_in = !is_input };
        KEEL_TRY(keel_model_new_node(m, layer, &call, &last));
    }
    if (last < 0 || json_array_size(layers) < 1)
        return keel_fail(KEEL_EFORMAT, "layers: the model is empty");
    const keel_symbol first = 0;
    KEEL_TRY(keel_model_put_symbols(&m->input, &m->n_input, &first, 1));
    return keel_model_put_symbols(&m->output, &m->n_output, &last, 1);
}

/* ---- Functional ------------------------------------------------------------------------------ */

/* Where an input of a call comes from. */
typedef struct source {
    int call, output; /* call -1: nowhere, a mask that is not there */
} source;

typedef struct wiring {
    json_t *names; /* layer name -> index */
    int n_call;    /* of all layers; call = first[layer] + index */
    int *first;    /* [n_layer + 1] */
    int *in_from;  /* [n_call + 1] into `in` */
    source *in;
    int n_in, cap_in;
    keel_symbol *symbol; /* [n_call]; -1: not made yet */
    char *state;         /* [n_call]; 1: waits for its inputs */
    bool *inference;     /* [n_call]; a model called with training=False */
    json_t **call;       /* [n_call]; the arguments of an operation */
    int *n_mask;         /* [n_call]; how many of its last inputs are masks of the first ones */
    int *stack;
} wiring;

static void wiring_free(wiring *w)
{
    json_decref(w->names);
    keel_free(w->first);
    keel_free(w->in_from);
    keel_free(w->in);
    keel_free(w->symbol);
    keel_free(w->state);
    keel_free(w->inference);
    keel_free(w->n_mask);
    for (int i = 0; w->call && i < w->n_call; i++) json_decref(w->call[i]);
    keel_free(w->call);
    keel_free(w->stack);
}

/* Finds the call that a reference such as ["dense", 0, 0] means. */
static keel_status find_call(const keel_model *m, const wiring *w, const json_t *history, int *call,
                             int *output)
{
    const char *name = json_string_value(json_array_get(history, 0));
    const json_t *node = json_array_get(history, 1), *tensor = json_array_get(history, 2);
    if (!name || !json_is_integer(node) || !json_is_integer(tensor))
        return keel_fail(KEEL_EFORMAT, "a reference to a tensor must read [layer, call, tensor]");
    const json_t *index = json_object_get(w->names, name);
    if (!index) return keel_fail(KEEL_EFORMAT, "there is no layer '%.100s'", name);
    const int layer = (int)json_integer_value(index);
    const int n = w->first[layer + 1] - w->first[layer];
    if (json_integer_value(node) < 0 || json_integer_value(node) >= n)
        return keel_fail(KEEL_EFORMAT, "layer '%s' has %d calls, not a call %lld",
                         m->layer[layer].name, n, (long long)json_integer_value(node));
    if (json_integer_value(tensor) < 0 || json_integer_value(tensor) >= OUTPUTS_OF_CALL_MAX)
        return keel_fail(KEEL_EFORMAT, "layer '%s' has no output %lld", m->layer[layer].name,
                         (long long)json_integer_value(tensor));
    *output = (int)json_integer_value(tensor);
    *call = w->first[layer] + (int)json_integer_value(node);
    return KEEL_OK;
}

/* The key of an object that follows `last` in sorted order. last NULL: the first. NULL: there are
 * no more. */
static const char *next_key(const json_t *v, const char *last)
{
    const char *key, *next = NULL;
    json_t *entry;
    json_object_foreach((json_t *)v, key, entry)
    {
        if ((!last || strcmp(key, last) > 0) && (!next || strcmp(key, next) < 0)) next = key;
    }
    return next;
}

static keel_status add_source(wiring *w, int call, int output)
{
    if (w->n_in == w->cap_in) {
        const int more = w->cap_in ? 2 * w->cap_in : 64;
        void *p = keel_grow(w->in, (size_t)more, sizeof *w->in);
        if (!p) return KEEL_ENOMEM;
        w->in = p;
        w->cap_in = more;
    }
    w->in[w->n_in++] = (source){ call, output };
    return KEEL_OK;
}

static keel_status add_inputs(const keel_model *m, wiring *w, const json_t *v, int depth)
{
    const char *class_name = text_at(v, "class_name");
    size_t i;
    const json_t *entry;
    if (depth > NESTED_MAX) return keel_fail(KEEL_EFORMAT, "inputs are nested too deeply");
    if (class_name && !strcmp(class_name, "__keras_tensor__")) {
        const json_t *history = json_object_get(json_object_get(v, "config"), "keras_history");
        int call, output;
        KEEL_TRY(find_call(m, w, history, &call, &output));
        return add_source(w, call, output);
    }
    if (json_is_object(v) && !class_name) { /* by sorted key, as Keras flattens it */
        const char *last = NULL;
        if (json_object_size(v) > KEYS_MAX)
            return keel_fail(KEEL_EUNSUP, "a call with more than %d inputs by name", KEYS_MAX);
        while ((last = next_key(v, last)))
            KEEL_TRY(add_inputs(m, w, json_object_get(v, last), depth + 1));
        return KEEL_OK;
    }
    if (!json_is_array(v))
        return keel_fail(KEEL_EUNSUP, "it is called with something else than layers' outputs");
    json_array_foreach(v, i, entry) KEEL_TRY(add_inputs(m, w, entry, depth + 1));
    return KEEL_OK;
}

static int layer_of(const keel_model *m, const wiring *w, int call)
{
    int low = 0, high = m->n_layer - 1;
    while (low < high) {
        const int mid = (low + high + 1) / 2;
        if (w->first[mid] <= call)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* Whether v is null, or a structure of nothing else. */
static bool is_nothing(const json_t *v, int depth)
{
    const char *key;
    json_t *entry;
    size_t i;
    if (!v || json_is_null(v)) return true;
    if (depth > NESTED_MAX || !(json_is_array(v) || json_is_object(v))) return false;
    json_array_foreach((json_t *)v, i, entry)
    {
        if (!is_nothing(entry, depth + 1)) return false;
    }
    json_object_foreach((json_t *)v, key, entry)
    {
        if (!is_nothing(entry, depth + 1)) return false;
    }
    return true;
}

/* The masks of a call, in the structure of its inputs; where an input has none is null. */
static keel_status add_masks(const keel_model *m, wiring *w, const json_t *v, int depth)
{
    const char *last = NULL;
    json_t *entry;
    size_t i;
    if (json_is_null(v)) return add_source(w, -1, 0);
    if (depth > NESTED_MAX || !(json_is_array(v) || json_is_object(v)) || text_at(v, "class_name"))
        return add_inputs(m, w, v, depth);
    if (json_object_size(v) > KEYS_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d masks by name", KEYS_MAX);
    while ((last = next_key(v, last)))
        KEEL_TRY(add_masks(m, w, json_object_get(v, last), depth + 1));
    json_array_foreach((json_t *)v, i, entry) KEEL_TRY(add_masks(m, w, entry, depth + 1));
    return KEEL_OK;
}

static keel_status read_kwarg(const keel_model *m, wiring *w, int call, const char *key,
                              const json_t *value)
{
    const keel_model_layer *l = &m->layer[layer_of(m, w, call)];
    const int n_in = w->n_in - w->in_from[call];
    if (is_nothing(value, 0)) return KEEL_OK;
    /* For a layer, Keras stores `training` as it was in the first call, whether the user gave it or
     * not; for a model, only if the user gave it. Keras 3.15 trains a model that was called with
     * training=False all the same; Keel does what Keras's guide to transfer learning says. */
    if (!strcmp(key, "training") && json_is_boolean(value)) {
        w->inference[call] = keel_model_layer_is_model(l) && json_is_false(value);
        return KEEL_OK;
    }
    if (!strcmp(key, "initial_state") && l->kind->takes_states) return KEEL_OK; /* an input */
    if (!strcmp(key, "mask")) {
        const keel_status s = add_masks(m, w, value, 0);
        if (s < 0) return keel_fail_within(s, "argument 'mask'");
        while (w->n_in > 0 && w->in[w->n_in - 1].call < 0) w->n_in--;
        w->n_mask[call] = w->n_in - w->in_from[call] - n_in;
        if (w->n_mask[call] <= n_in) return KEEL_OK;
        return keel_fail(KEEL_EUNSUP, "it is called with masks of %d of %d inputs: not supported",
                         w->n_mask[call], n_in);
    }
    return keel_fail(KEEL_EUNSUP, "it is called with the argument '%.60s': not supported", key);
}

/* Puts a copy of v into `to`, under the key of an object or at the end of a list. The copy has the
 * numbers of the call's inputs in place of tensors. */
static keel_status take_arguments(const keel_model *m, wiring *w, int call, const char *name,
                                  const json_t *v, json_t *to, int depth)
{
    const char *class_name = text_at(v, "class_name"), *key;
    const int first = w->in_from[call];
    json_t *copy = NULL, *child;
    size_t i;
    if (depth > NESTED_MAX) return keel_fail(KEEL_EFORMAT, "arguments are nested too deeply");
    if (class_name && !strcmp(class_name, "__keras_tensor__")) {
        KEEL_TRY(add_inputs(m, w, v, depth));
        if (w->n_in - first > INPUTS_OF_CALL_MAX)
            return keel_fail(KEEL_EUNSUP, "a call with more than %d inputs", INPUTS_OF_CALL_MAX);
        copy = json_pack("{s:i}", KEEL_CALL_VALUE, w->n_in - first - 1);
    } else if (json_object_get(v, KEEL_CALL_VALUE)) {
        return keel_fail(KEEL_EFORMAT, "an argument '%s'", KEEL_CALL_VALUE);
    } else if (json_is_object(v)) {
        copy = json_object();
    } else if (json_is_array(v)) {
        copy = json_array();
    } else {
        copy = v ? json_deep_copy(v) : json_null();
    }
    if (json_is_object(to) ? json_object_set_new(to, name, copy) : json_array_append_new(to, copy))
        return keel_fail(KEEL_ENOMEM, "out of memory reading the model");
    if (json_object_get(copy, KEEL_CALL_VALUE)) return KEEL_OK;
    json_object_foreach((json_t *)v, key, child)
    {
        KEEL_TRY(take_arguments(m, w, call, key, child, copy, depth + 1));
    }
    json_array_foreach((json_t *)v, i, child)
    {
        KEEL_TRY(take_arguments(m, w, call, NULL, child, copy, depth + 1));
    }
    return KEEL_OK;
}

static keel_status read_call(const keel_model *m, wiring *w, int call, const json_t *v)
{
    const json_t *kwargs = json_object_get(v, "kwargs"), *value;
    const char *key;
    if (!json_is_object(v) || !json_is_array(json_object_get(v, "args")))
        return keel_fail(KEEL_EFORMAT, "inbound_nodes: expected objects with args and kwargs");
    w->in_from[call] = w->n_in;
    const keel_layer *kind = m->layer[layer_of(m, w, call)].kind;
    if (kind->operation || kind->by_arguments) {
        if (!(w->call[call] = json_object()))
            return keel_fail(KEEL_ENOMEM, "out of memory reading the model");
        KEEL_TRY(take_arguments(m, w, call, "args", json_object_get(v, "args"), w->call[call], 0));
        return take_arguments(m, w, call, "kwargs", kwargs, w->call[call], 0);
    }
    KEEL_TRY(add_inputs(m, w, json_object_get(v, "args"), 0));
    if (m->layer[layer_of(m, w, call)].kind->takes_states &&
        !is_nothing(json_object_get(kwargs, "initial_state"), 0))
        KEEL_TRY(add_inputs(m, w, json_object_get(kwargs, "initial_state"), 0));
    json_object_foreach((json_t *)kwargs, key, value)
    {
        KEEL_TRY(read_kwarg(m, w, call, key, value));
    }
    if (w->n_in - w->in_from[call] > INPUTS_OF_CALL_MAX)
        return keel_fail(KEEL_EUNSUP, "a call with more than %d inputs", INPUTS_OF_CALL_MAX);
    return KEEL_OK;
}

/* Lists the layers by name, and how many calls each has. */
static keel_status count_calls(keel_model *m, wiring *w, const json_t *layers)
{
    const size_t n = json_array_size(layers);
    w->names = json_object();
    w->first = keel_calloc(n + 1, sizeof *w->first);
    if (!w->first) return KEEL_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(layers, i);
        const json_t *inbound = json_object_get(v, "inbound_nodes");
        int layer;
        KEEL_TRY(keel_model_read_layer(m, v, &layer));
        const keel_model_layer *l = &m->layer[layer];
        const size_t calls = l->kind->emit ? json_array_size(inbound) : 1;
        if (text_at(v, "name") && strcmp(text_at(v, "name"), l->name))
            return keel_fail(KEEL_EFORMAT, "layer '%s' is also called '%.100s'", l->name,
                             text_at(v, "name"));
        if (l->kind->emit ? calls == 0 : json_array_size(inbound) != 0)
            return keel_fail(KEEL_EFORMAT, "layer '%s': %s", l->name,
                             l->kind->emit ? "inbound_nodes: it is never called"
                                           : "an input has no inputs");
        if (calls > CALLS_MAX || w->n_call + (int)calls > CALLS_MAX)
            return keel_fail(KEEL_EUNSUP, "more than %d calls of layers", CALLS_MAX);
        w->n_call += (int)calls;
        w->first[i + 1] = w->n_call;
        if (json_object_set_new(w->names, l->name, json_integer(layer)))
            return keel_fail(KEEL_ENOMEM, "out of memory reading the model");
    }
    w->in_from = keel_calloc((size_t)w->n_call + 1, sizeof *w->in_from);
    w->symbol = keel_calloc((size_t)w->n_call, sizeof *w->symbol);
    w->state = keel_calloc((size_t)w->n_call, 1);
    w->stack = keel_calloc((size_t)w->n_call, sizeof *w->stack);
    w->inference = keel_calloc((size_t)w->n_call, sizeof *w->inference);
    w->n_mask = keel_calloc((size_t)w->n_call, sizeof *w->n_mask);
    w->call = keel_calloc((size_t)w->n_call, sizeof *w->call);
    if (!w->in_from || !w->symbol || !w->state || !w->stack || !w->inference || !w->n_mask ||
        !w->call)
        return KEEL_ENOMEM;
    for (int i = 0; i < w->n_call; i++) w->symbol[i] = -1;
    return KEEL_OK;
}

/* What `call` still waits for: an input, or the previous call of its layer; -1: nothing. */
static int waits_for(const keel_model *m, const wiring *w, int call)
{
    if (call > w->first[layer_of(m, w, call)] && w->symbol[call - 1] < 0) return call - 1;
    for (int i = w->in_from[call]; i < w->in_from[call + 1]; i++)
        if (w->in[i].call >= 0 && w->symbol[w->in[i].call] < 0) return w->in[i].call;
    return -1;
}

/* An output of a call that has been made; -1: of none. */
static keel_status symbol_of(const keel_model *m, const wiring *w, int call, int output,
                             keel_symbol *out)
{
    *out = -1;
    if (call < 0) return KEEL_OK;
    const keel_model_node *n = keel_model_maker(m, w->symbol[call]);
    if (output >= n->n_out)
        return keel_fail(KEEL_EFORMAT, "layer '%s' has %d output%s, not an output %d",
                         m->layer[n->layer].name, n->n_out, n->n_out == 1 ? "" : "s", output);
    *out = n->out + output;
    return KEEL_OK;
}

static keel_status make_call(keel_model *m, wiring *w, int call)
{
    const int from = w->in_from[call], n = w->in_from[call + 1] - from;
    keel_symbol *in = keel_calloc((size_t)n, sizeof *in);
    if (!in) return KEEL_ENOMEM;
    keel_status s = KEEL_OK;
    for (int i = 0; i < n && s >= 0; i++)
        s = symbol_of(m, w, w->in[from + i].call, w->in[from + i].output, &in[i]);
    const keel_model_call_of parts = { .in = in,
                                       .n_in = n - w->n_mask[call],
                                       .n_mask = w->n_mask[call],
                                       .inference = w->inference[call],
                                       .call = w->call[call] };
    if (s >= 0) s = keel_model_new_node(m, layer_of(m, w, call), &parts, &w->symbol[call]);
    keel_free(in);
    return s;
}

/* Makes the calls in the order of the file, but each after what it waits for. */
static keel_status make_calls(keel_model *m, wiring *w)
{
    for (int first = 0; first < w->n_call; first++) {
        int height = 0;
        if (w->symbol[first] >= 0) continue;
        w->stack[height++] = first;
        w->state[first] = 1;
        while (height) {
            const int call = w->stack[height - 1], needs = waits_for(m, w, call);
            if (needs < 0) {
                KEEL_TRY(make_call(m, w, call));
                height--;
                continue;
            }
            if (w->state[needs])
                return keel_fail(KEEL_EFORMAT, "layer '%s' is part of a cycle",
                                 m->layer[layer_of(m, w, needs)].name);
            w->state[needs] = 1;
            w->stack[height++] = needs;
        }
    }
    return KEEL_OK;
}

/* Here the calls of a Functional model count from 1, because building it is call 0. */
static keel_status find_end(const keel_model *m, const wiring *w, const json_t *v, int *call,
                            int *output)
{
    json_t *own = NULL;
    const json_t *index = json_object_get(w->names, json_string_value(json_array_get(v, 0)));
    if (!index || m->layer[json_integer_value(index)].kind != &keel_kind_functional)
        return find_call(m, w, v, call, output);
    own = json_pack("[O,I,O]", json_array_get(v, 0), json_integer_value(json_array_get(v, 1)) - 1,
                    json_array_get(v, 2));
    if (!own)
        return keel_fail(KEEL_EFORMAT, "a reference to a tensor must read [layer, call, "
                                       "tensor]");
    const keel_status s = find_call(m, w, own, call, output);
    json_decref(own);
    return s;
}

/* The ends of a model, inputs or outputs, and where each is in their structure. */
typedef struct ends {
    keel_symbol list[KEEL_OUTPUTS_MAX];
    int n;
    json_t *path;  /* keys and places down to the one that is read */
    json_t *paths; /* [n] copies of it */
} ends;

static keel_status add_ends(const keel_model *m, const wiring *w, const json_t *v, ends *e,
                            int depth);

/* What the structure has under a key or at a place. */
static keel_status add_below(const keel_model *m, const wiring *w, const json_t *v, json_t *step,
                             ends *e, int depth)
{
    if (json_array_append_new(e->path, step))
        return keel_fail(KEEL_ENOMEM, "out of memory reading the model");
    const keel_status s = add_ends(m, w, v, e, depth + 1);
    json_array_remove(e->path, json_array_size(e->path) - 1);
    return s;
}

/* input_layers and output_layers: one reference, a list of them, or an object (by sorted key). */
static keel_status add_ends(const keel_model *m, const wiring *w, const json_t *v, ends *e,
                            int depth)
{
    const char *last = NULL;
    size_t i;
    json_t *entry;
    if (depth > NESTED_MAX) return keel_fail(KEEL_EFORMAT, "nested too deeply");
    if (json_is_string(json_array_get(v, 0))) {
        int call, output;
        KEEL_TRY(find_end(m, w, v, &call, &output));
        if (e->n == KEEL_OUTPUTS_MAX) return keel_fail(KEEL_EUNSUP, "more than %d", e->n);
        if (json_array_append_new(e->paths, json_copy(e->path)))
            return keel_fail(KEEL_ENOMEM, "out of memory reading the model");
        return symbol_of(m, w, call, output, &e->list[e->n++]);
    }
    if (json_is_array(v)) {
        json_array_foreach(v, i, entry)
            KEEL_TRY(add_below(m, w, entry, json_integer((json_int_t)i), e, depth));
        return KEEL_OK;
    }
    if (!json_is_object(v) || json_object_size(v) > (size_t)KEEL_OUTPUTS_MAX)
        return keel_fail(KEEL_EFORMAT, "expected references to at most %d layers",
                         KEEL_OUTPUTS_MAX);
    while ((last = next_key(v, last)))
        KEEL_TRY(add_below(m, w, json_object_get(v, last), json_string(last), e, depth));
    return KEEL_OK;
}

static keel_status read_one_end(keel_model *m, const wiring *w, const json_t *config,
                                const char *key, ends *e)
{
    *e = (ends){ .path = json_array(), .paths = json_array() };
    keel_status s = add_ends(m, w, json_object_get(config, key), e, 0);
    json_decref(e->path);
    if (s < 0) {
        json_decref(e->paths);
        return keel_fail_within(s, key);
    }
    return KEEL_OK;
}

static keel_status check_inputs(const keel_model *m, const ends *e)
{
    int inputs = 0;
    for (int i = 0; i < e->n; i++) {
        const keel_model_layer *l = &m->layer[keel_model_maker(m, e->list[i])->layer];
        if (l->kind->emit)
            return keel_fail(KEEL_EUNSUP, "input_layers: '%s' is no InputLayer", l->name);
        for (int k = 0; k < i; k++)
            if (e->list[k] == e->list[i])
                return keel_fail(KEEL_EFORMAT, "input_layers: '%s' twice", l->name);
    }
    for (int i = 0; i < m->n_layer; i++) inputs += !m->layer[i].kind->emit;
    if (inputs == e->n) return KEEL_OK;
    return keel_fail(KEEL_EFORMAT, "input_layers: %d of the %d inputs", e->n, inputs);
}

static keel_status read_ends(keel_model *m, const wiring *w, const json_t *config)
{
    ends e;
    KEEL_TRY(read_one_end(m, w, config, "output_layers", &e));
    m->output_paths = e.paths;
    if (e.n == 0) return keel_fail(KEEL_EFORMAT, "output_layers: the model has no output");
    KEEL_TRY(keel_model_put_symbols(&m->output, &m->n_output, e.list, e.n));
    KEEL_TRY(keel_model_name_outputs(m));
    KEEL_TRY(read_one_end(m, w, config, "input_layers", &e));
    m->input_paths = e.paths;
    KEEL_TRY(check_inputs(m, &e));
    return keel_model_put_symbols(&m->input, &m->n_input, e.list, e.n);
}

static keel_status read_functional(keel_model *m, const json_t *config, const json_t *layers)
{
    keel_status s = KEEL_OK;
    wiring w = { 0 };
    if ((s = count_calls(m, &w, layers)) < 0) goto out;
    for (int i = 0; i < m->n_layer; i++) {
        const json_t *inbound = json_object_get(json_array_get(layers, (size_t)i), "inbound_nodes");
        for (int c = w.first[i]; c < w.first[i + 1]; c++) {
            if (!m->layer[i].kind->emit)
                w.in_from[c] = w.n_in;
            else
                s = read_call(m, &w, c, json_array_get(inbound, (size_t)(c - w.first[i])));
            if (s < 0) {
                s = keel_fail_within(s, "layer '%s'", m->layer[i].name);
                goto out;
            }
        }
    }
    w.in_from[w.n_call] = w.n_in;
    if ((s = make_calls(m, &w)) < 0) goto out;
    if ((s = read_ends(m, &w, config)) < 0) goto out;
    s = keel_model_keras_order(m);
out:
    wiring_free(&w);
    return s;
}

/* ---- both ------------------------------------------------------------------------------------ */

keel_status keel_model_from_config(keel_model *m, const json_t *root)
{
    const char *class_name = text_at(root, "class_name");
    const json_t *config = json_object_get(root, "config");
    const json_t *layers = json_object_get(config, "layers");
    const json_t *trainable = json_object_get(config, "trainable");
    if (!class_name || !json_is_object(config))
        return keel_fail(KEEL_EFORMAT, "expected class_name and config");
    m->sequential = !strcmp(class_name, "Sequential");
    m->functional = !strcmp(class_name, "Functional");
    if (!m->sequential && !m->functional)
        return keel_fail(KEEL_EUNSUP,
                         "a model of class '%.100s': only Sequential and Functional are supported; "
                         "keras.Model(x, model.call(x)) with x = keras.Input(...) makes it "
                         "Functional, if call only uses layers and keras.ops",
                         class_name);
    if (!json_is_array(layers)) return keel_fail(KEEL_EFORMAT, "layers: expected a list");
    const char *name = text_at(config, "name");
    keel_free(m->name);
    m->name = keel_strdup(name ? name : class_name);
    if (!m->name) return KEEL_ENOMEM;
    if (m->sequential)
        KEEL_TRY(read_sequential(m, root, layers));
    else
        KEEL_TRY(read_functional(m, config, layers));
    m->finished = true;
    if (m->outer) return KEEL_OK; /* the outermost model numbers all weights */
    KEEL_TRY(keel_model_number(m));
    return json_is_false(trainable) ? keel_model_set_trainable(m, NULL, false) : KEEL_OK;
}
