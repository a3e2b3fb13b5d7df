/* Turns the configuration of a whole model in the older HDF5 format into that of a .keras file.
 *
 * Keras 3 writes today's calls and arguments, only without modules, and what compile chose in a
 * training_config. Keras 2 also has older names: classes, keys and values are in the tables below;
 * calls are lists, [[["dense", 0, 0, {}]]], and a Sequential model may begin without its input. All
 * of that is known here only: what reads models and layers sees today's form. */
#include "base/memory.h"
#include "base/text.h"
#include "model/parts.h"
#include <stdio.h>
#include <string.h>

enum { ARGUMENTS_DEEP = 8 };

typedef struct renamed {
    const char *in;   /* the class; NULL: any */
    const char *key;  /* of Keras 2 */
    const char *is;   /* JSON: it must have this value, since Keras 3 knows no other; NULL: any */
    const char *into; /* today's key; NULL: it is dropped */
} renamed;

/* What layers of Keras 2 have that Keras 3 calls by another name, or does not have. */
static const renamed of_layers[] = {
    { "InputLayer", "batch_input_shape", NULL, "batch_shape" },
    { NULL, "batch_input_shape", NULL, NULL }, /* read_sequential makes an input of it */
    { "Embedding", "input_length", NULL, NULL },
    { NULL, "time_major", "false", NULL },
    { NULL, "implementation", NULL, NULL },
    { NULL, "dynamic", "false", NULL },
    { "LeakyReLU", "alpha", NULL, "negative_slope" },
    { "MultiHeadAttention", "query_shape", NULL, NULL }, /* they follow from the inputs */
    { "MultiHeadAttention", "key_shape", NULL, NULL },
    { "MultiHeadAttention", "value_shape", NULL, NULL },
    { "MultiHeadAttention", "softmax_robust_masking", "false", NULL },
    { "DepthwiseConv1D", "groups", "1", NULL },
    { "DepthwiseConv2D", "groups", "1", NULL },
    { "SeparableConv1D", "groups", "1", NULL },
    { "SeparableConv2D", "groups", "1", NULL },
    { "Conv1DTranspose", "groups", "1", NULL },
    { "Conv2DTranspose", "groups", "1", NULL },
    { "Conv3DTranspose", "groups", "1", NULL },
    { "SeparableConv1D", "kernel_initializer", NULL, NULL }, /* it has no such kernel */
    { "SeparableConv1D", "kernel_regularizer", NULL, NULL },
    { "SeparableConv1D", "kernel_constraint", NULL, NULL },
    { "SeparableConv2D", "kernel_initializer", NULL, NULL },
    { "SeparableConv2D", "kernel_regularizer", NULL, NULL },
    { "SeparableConv2D", "kernel_constraint", NULL, NULL },
    { "BatchNormalization", "renorm", "false", NULL },
    { "BatchNormalization", "renorm_clipping", "null", NULL },
    { "BatchNormalization", "renorm_momentum", NULL, NULL },
    { "BatchNormalization", "virtual_batch_size", "null", NULL },
    { "BatchNormalization", "adjustment", "null", NULL },
    { "BatchNormalization", "fused", NULL, NULL },
};

/* Optimizers of Keras 2; `decay` becomes a schedule. */
static const renamed of_optimizers[] = {
    { NULL, "lr", NULL, "learning_rate" },
    { NULL, "beta1", NULL, "beta_1" },
    { NULL, "beta2", NULL, "beta_2" },
    { NULL, "jit_compile", NULL, NULL },
    { NULL, "is_legacy_optimizer", NULL, NULL },
    { NULL, "epsilon", "null", NULL },
    { NULL, "schedule_decay", "0.004", NULL },
    { "Nadam", "decay", "0.004", NULL }, /* as schedule_decay, which it was called before */
};

static const char *const old_classes[][2] = {
    { "Model", "Functional" },
    { "BatchNormalizationV1", "BatchNormalization" },
    { "BatchNormalizationV2", "BatchNormalization" },
};

static keel_status no_memory(void)
{
    return keel_fail(KEEL_ENOMEM, "out of memory reading the model");
}

static bool set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static const char *text_at(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

static bool ends(const char *text, const char *with)
{
    const size_t n = strlen(text), m = strlen(with);
    return n >= m && !strcmp(text + n - m, with);
}

/* Is v a model? */
static bool is_model(const json_t *v)
{
    const char *name = text_at(v, "class_name");
    return name && (!strcmp(name, "Functional") || !strcmp(name, "Sequential"));
}

/* Whether the value is that JSON; numbers are compared by value. */
static bool has_value(const json_t *v, const char *text)
{
    json_t *want = json_loads(text, JSON_DECODE_ANY, NULL);
    const bool same = json_is_number(v) && json_is_number(want)
                          ? json_number_value(v) == json_number_value(want)
                          : json_equal(v, want);
    json_decref(want);
    return same;
}

static keel_status rename_keys(json_t *config, const char *class_name, const renamed *table,
                               size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const renamed *r = &table[i];
        json_t *v = json_object_get(config, r->key);
        if (!v || (r->in && strcmp(r->in, class_name) != 0)) continue;
        if (r->is && !has_value(v, r->is)) continue; /* it is refused by its name later */
        if (r->into && !json_object_get(config, r->into) && json_object_set(config, r->into, v))
            return no_memory();
        json_object_del(config, r->key);
    }
    return KEEL_OK;
}

/* Gives v the module of Keras 3, unless it has one. */
static keel_status add_module(json_t *v, const char *module)
{
    if (json_is_string(json_object_get(v, "module"))) return KEEL_OK;
    if (set(v, "module", json_string(module)) && set(v, "registered_name", json_null()))
        return KEEL_OK;
    return no_memory();
}

/* ---- layers ---------------------------------------------------------------------------------- */

static keel_status read_layer(json_t *v, int depth);

/* VarianceScaling's "normal" was cut off at two deviations, as "truncated_normal" is. Those of
 * TensorFlow itself (tf.constant_initializer) have the names and the arguments of Keras's. */
static keel_status read_initializer(json_t *v)
{
    json_t *config = json_object_get(v, "config");
    const char *distribution = text_at(config, "distribution"), *module = text_at(v, "module");
    json_object_del(config, "dtype");
    if (module && !strcmp(module, "tensorflow.python.ops.init_ops_v2") &&
        (!set(v, "module", json_string("keras.initializers")) ||
         !set(v, "registered_name", json_null())))
        return no_memory();
    if (distribution && !strcmp(distribution, "normal") &&
        !set(config, "distribution", json_string("truncated_normal")))
        return no_memory();
    return KEEL_OK;
}

static keel_status read_policy(json_t *config)
{
    json_t *policy = json_object_get(config, "dtype");
    const char *class_name = text_at(policy, "class_name");
    if (!class_name || (strcmp(class_name, "Policy") && strcmp(class_name, "PolicyV1")))
        return KEEL_OK;
    if (set(policy, "class_name", json_string("DTypePolicy")) &&
        set(policy, "module", json_string("keras")) && set(policy, "registered_name", json_null()))
        return KEEL_OK;
    return no_memory();
}

/* Layers that the layer holds, also as its activation, and initializers. */
static keel_status read_inside(json_t *config, int depth)
{
    const char *key;
    json_t *v, *entry;
    size_t i;
    json_object_foreach(config, key, v)
    {
        if (ends(key, "_initializer")) {
            KEEL_TRY(read_initializer(v));
        } else if (ends(key, "layer") || !strcmp(key, "cell") || ends(key, "activation")) {
            if (text_at(v, "class_name")) KEEL_TRY(read_layer(v, depth + 1));
        } else if (!strcmp(key, "cells")) {
            json_array_foreach(v, i, entry) KEEL_TRY(read_layer(entry, depth + 1));
        }
    }
    return KEEL_OK;
}

/* Keras 2 has no backward_layer in the config unless the user gave one, and names both layers only
 * when it makes them. */
static keel_status read_both_ways(json_t *config)
{
    json_t *forward = json_object_get(config, "layer");
    const json_t *args = json_object_get(forward, "config");
    const char *name = text_at(args, "name");
    keel_text names[2] = { { 0 }, { 0 } };
    bool ok = true;
    if (!name || json_object_get(config, "backward_layer")) return KEEL_OK;
    keel_text_add(&names[0], "forward_%s", name);
    keel_text_add(&names[1], "backward_%s", name);
    json_t *backward = names[0].failed || names[1].failed ? NULL : json_deep_copy(forward);
    json_t *turned = json_object_get(backward, "config");
    ok = backward && set(turned, "name", json_string(names[1].data)) &&
         set(turned, "go_backwards",
             json_boolean(!json_is_true(json_object_get(args, "go_backwards")))) &&
         set(json_object_get(forward, "config"), "name", json_string(names[0].data));
    ok = set(config, "backward_layer", backward) && ok;
    keel_text_free(&names[0]);
    keel_text_free(&names[1]);
    return ok ? KEEL_OK : no_memory();
}

/* The layer of InceptionResNetV2 is registered as if it were the user's own. */
static keel_status read_own(json_t *v)
{
    const char *name = text_at(v, "class_name");
    if (!name || strcmp(name, "Custom>CustomScaleLayer") != 0 || keel_layer_registered(name))
        return KEEL_OK;
    return set(v, "class_name", json_string("CustomScaleLayer")) &&
                   set(v, "module", json_string("keras.src.applications.inception_resnet_v2")) &&
                   set(v, "registered_name", json_null())
               ? KEEL_OK
               : no_memory();
}

static keel_status read_plain(json_t *v, int depth)
{
    json_t *config = json_object_get(v, "config"), *axis = json_object_get(config, "axis");
    if (keel_legacy_is_operation(v)) return KEEL_OK; /* read_calls turns it */
    KEEL_TRY(read_own(v));
    const char *class_name = text_at(v, "class_name");
    KEEL_TRY(add_module(v, "keras.layers"));
    KEEL_TRY(rename_keys(config, class_name, of_layers, sizeof of_layers / sizeof *of_layers));
    if (json_array_size(axis) == 1 && json_object_set(config, "axis", json_array_get(axis, 0)))
        return no_memory();
    KEEL_TRY(read_policy(config));
    if (!strcmp(class_name, "Bidirectional")) KEEL_TRY(read_both_ways(config));
    return read_inside(config, depth);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Of the layers of a Functional model, those whose building was their call 0 in Keras 2, by name:
 * models with an input. true: it is Sequential. */
static json_t *built_by_call(const json_t *layers)
{
    const json_t *v;
    size_t i;
    json_t *names = json_object();
    json_array_foreach(layers, i, v)
    {
        const json_t *config = json_object_get(v, "config");
        const char *first =
            text_at(json_array_get(json_object_get(config, "layers"), 0), "class_name");
        const char *own = text_at(v, "name");
        if (!own) own = text_at(config, "name");
        if (!own || !is_model(v) || !first || strcmp(first, "InputLayer") != 0) continue;
        if (set(names, own, json_boolean(!strcmp(text_at(v, "class_name"), "Sequential"))))
            continue;
        json_decref(names);
        return NULL;
    }
    return names;
}

/* ["_CONSTANT_VALUE", -1, 2.0, {}] stands for a number or an array in the place of a tensor. */
static bool is_constant(const json_t *v)
{
    const char *name = json_string_value(json_array_get(v, 0));
    return name && !strcmp(name, "_CONSTANT_VALUE") && json_array_size(v) >= 3;
}

static bool is_reference(const json_t *v)
{
    return is_constant(v) ||
           (json_is_string(json_array_get(v, 0)) && json_is_integer(json_array_get(v, 1)) &&
            json_is_integer(json_array_get(v, 2)) && json_array_size(v) <= 4);
}

/* ["dense", 0, 0] as the tensor of a call. */
static json_t *tensor(const json_t *built, const json_t *v)
{
    if (is_constant(v)) return json_incref(json_array_get(v, 2));
    const char *name = json_string_value(json_array_get(v, 0));
    const json_int_t call = json_integer_value(json_array_get(v, 1));
    return json_pack("{s:s,s:{s:[n],s:s,s:[O,I,O]}}", "class_name", "__keras_tensor__", "config",
                     "shape", "dtype", "float32", "keras_history", json_array_get(v, 0),
                     call - (json_object_get(built, name) != NULL), json_array_get(v, 2));
}

/* A copy of arguments, with tensors for references. NULL: no memory, or too deep. */
static json_t *arguments(const json_t *built, const json_t *v, int depth)
{
    const char *key;
    json_t *entry, *copy;
    size_t i;
    bool ok = true;
    if (depth > ARGUMENTS_DEEP) return NULL;
    if (is_reference(v)) return tensor(built, v);
    if (!json_is_array(v) && !json_is_object(v)) return v ? json_deep_copy(v) : json_null();
    copy = json_is_array(v) ? json_array() : json_object();
    json_object_foreach((json_t *)v, key, entry)
    {
        ok = ok && set(copy, key, arguments(built, entry, depth + 1));
    }
    json_array_foreach((json_t *)v, i, entry)
    {
        ok = ok && json_array_append_new(copy, arguments(built, entry, depth + 1)) == 0;
    }
    if (ok) return copy;
    json_decref(copy);
    return NULL;
}

/* Keras 3 takes the states only by their name. */
static keel_status move_states(json_t *args, json_t *named)
{
    json_t *states = json_array();
    bool ok = states && named;
    if (json_array_size(args) < 2 || json_object_get(named, "initial_state")) {
        json_decref(states);
        return KEEL_OK;
    }
    while (ok && json_array_size(args) > 1) {
        ok = json_array_append(states, json_array_get(args, 1)) == 0 && !json_array_remove(args, 1);
    }
    return set(named, "initial_state", states) && ok ? KEEL_OK : no_memory();
}

/* One call: a list of inputs, each with the same arguments, or a single one. states: the inputs
 * after the first are the layer's initial_state. */
static keel_status read_call(const json_t *built, const json_t *call, bool states, json_t **out)
{
    const json_t *input, *kwargs = NULL;
    size_t i;
    json_t *one = is_reference(call) ? json_pack("[O]", call) : json_incref((json_t *)call);
    json_t *args = json_array();
    keel_status s = args ? KEEL_OK : no_memory();
    if (json_array_size(one) == 0)
        s = keel_fail(KEEL_EFORMAT, "inbound_nodes: a call without inputs");
    json_array_foreach(one, i, input)
    {
        if (s < 0) break;
        if (!is_reference(input))
            s = keel_fail(KEEL_EFORMAT, "inbound_nodes: a reference to a tensor must read [layer, "
                                        "call, tensor, arguments]");
        else if (json_array_append_new(args, tensor(built, input)))
            s = no_memory();
        kwargs = json_array_get(input, 3);
    }
    if (s >= 0) {
        json_t *named = kwargs ? arguments(built, kwargs, 0) : json_object();
        if (states) s = move_states(args, named);
        if (s < 0) {
            json_decref(named);
            goto out;
        }
        *out = json_array_size(args) == 1 ? json_pack("{s:O,s:o}", "args", args, "kwargs", named)
                                          : json_pack("{s:[O],s:o}", "args", args, "kwargs", named);
        if (!*out) s = keel_fail(KEEL_EFORMAT, "inbound_nodes: arguments are nested too deeply");
    }
out:
    json_decref(args);
    json_decref(one);
    return s;
}

static keel_status read_calls(const json_t *built, json_t *v)
{
    json_t *calls = json_object_get(v, "inbound_nodes"), *call, *made = NULL;
    const keel_layer *kind = keel_model_class_of(v);
    const bool states = kind && kind->takes_states;
    size_t i;
    json_array_foreach(calls, i, call)
    {
        if (json_is_object(call)) continue; /* today's form */
        KEEL_TRY(read_call(built, call, states, &made));
        if (json_array_set_new(calls, i, made)) return no_memory();
    }
    return keel_legacy_is_operation(v) ? keel_legacy_operation(v) : KEEL_OK;
}

/* config.c counts the calls of a Functional model at an end from 1, those of others from 0. */
static keel_status read_end(const json_t *built, json_t *v, int depth)
{
    json_t *entry;
    const char *key;
    size_t i;
    if (depth > ARGUMENTS_DEEP) return keel_fail(KEEL_EFORMAT, "outputs are nested too deeply");
    if (!is_reference(v)) {
        json_object_foreach(v, key, entry) KEEL_TRY(read_end(built, entry, depth + 1));
        json_array_foreach(v, i, entry) KEEL_TRY(read_end(built, entry, depth + 1));
        return KEEL_OK;
    }
    const json_int_t call = json_integer_value(json_array_get(v, 1));
    if (!json_is_true(json_object_get(built, json_string_value(json_array_get(v, 0)))))
        return KEEL_OK;
    return json_array_set_new(v, 1, json_integer(call - 1)) ? no_memory() : KEEL_OK;
}

/* ---- models ---------------------------------------------------------------------------------- */

/* The shape that a layer, or the first one inside it, expects. */
static json_t *shape_of(const json_t *v, int depth)
{
    const json_t *config = json_object_get(v, "config");
    json_t *shape = json_object_get(config, "batch_input_shape");
    if (!shape) shape = json_object_get(config, "batch_shape");
    if (shape || depth > KEEL_MODELS_DEEP) return shape;
    return is_model(v) ? shape_of(json_array_get(json_object_get(config, "layers"), 0), depth + 1)
                       : NULL;
}

/* Puts the input that the first layer's shape tells of before it. */
static keel_status add_input(json_t *layers)
{
    const json_t *first = json_array_get(layers, 0);
    const char *class_name = text_at(first, "class_name");
    const char *name = text_at(json_object_get(first, "config"), "name");
    json_t *shape = shape_of(first, 0), *input;
    keel_text own = { 0 };
    if (!class_name || !strcmp(class_name, "InputLayer") || !shape) return KEEL_OK;
    keel_text_add(&own, "%s_input", name ? name : "layer");
    input = own.failed ? NULL
                       : json_pack("{s:s,s:{s:O,s:s,s:s}}", "class_name", "InputLayer", "config",
                                   "batch_shape", shape, "dtype", "float32", "name", own.data);
    keel_text_free(&own);
    return json_array_insert_new(layers, 0, input) ? no_memory() : KEEL_OK;
}

/* The layers of a model, once its config is an object. */
static keel_status read_layers(json_t *v, json_t *config, int depth)
{
    json_t *layers = json_object_get(config, "layers"), *layer;
    size_t i;
    bool old = false;
    json_array_foreach(layers, i, layer)
    {
        const json_t *call = json_array_get(json_object_get(layer, "inbound_nodes"), 0);
        old = old || json_is_array(call);
    }
    if (!strcmp(text_at(v, "class_name"), "Sequential")) KEEL_TRY(add_input(layers));
    json_array_foreach(layers, i, layer) KEEL_TRY(read_layer(layer, depth + 1));
    if (!old) return KEEL_OK;
    json_t *built = built_by_call(layers);
    keel_status s = built ? KEEL_OK : no_memory();
    json_array_foreach(layers, i, layer) if (s >= 0) s = read_calls(built, layer);
    if (s >= 0) s = read_end(built, json_object_get(config, "output_layers"), 0);
    json_decref(built);
    return s;
}

static keel_status read_model(json_t *v, int depth)
{
    json_t *config = json_object_get(v, "config");
    const bool sequential = !strcmp(text_at(v, "class_name"), "Sequential");
    if (json_is_array(config)) { /* Keras before 2.2.3: a list of layers, and no name */
        if (!set(v, "config", json_pack("{s:s,s:O}", "name", "sequential", "layers", config)))
            return no_memory();
        config = json_object_get(v, "config");
    }
    KEEL_TRY(add_module(v, sequential ? "keras" : "keras.src.models.functional"));
    return read_layers(v, config, depth);
}

static keel_status read_layer(json_t *v, int depth)
{
    const char *class_name = text_at(v, "class_name");
    if (depth > KEEL_MODELS_DEEP)
        return keel_fail(KEEL_EUNSUP, "models inside models are nested more than %d deep",
                         KEEL_MODELS_DEEP);
    if (!class_name) return KEEL_OK; /* config.c refuses it */
    for (size_t i = 0; i < sizeof old_classes / sizeof *old_classes; i++) {
        if (strcmp(class_name, old_classes[i][0])) continue;
        if (!set(v, "class_name", json_string(old_classes[i][1]))) return no_memory();
        break; /* class_name is gone */
    }
    return is_model(v) ? read_model(v, depth) : read_plain(v, depth);
}

/* ---- what compile chose ---------------------------------------------------------------------- */

/* Keras 2 divided the rate by 1 + decay * steps. */
static keel_status read_decay(json_t *config)
{
    const double decay = json_number_value(json_object_get(config, "decay"));
    json_t *rate = json_object_get(config, "learning_rate");
    if (decay > 0 && json_is_number(rate)) {
        json_t *args = json_pack("{s:O,s:i,s:f,s:b}", "initial_learning_rate", rate, "decay_steps",
                                 1, "decay_rate", decay, "staircase", 0);
        json_t *schedule =
            json_pack("{s:s,s:s,s:o,s:n}", "module", "keras.optimizers.schedules", "class_name",
                      "InverseTimeDecay", "config", args, "registered_name");
        if (!set(config, "learning_rate", schedule)) return no_memory();
        rate = NULL;
    }
    if (decay == 0 || !rate) json_object_del(config, "decay"); /* else it is refused by name */
    return KEEL_OK;
}

static keel_status read_optimizer(json_t *v)
{
    json_t *config = json_object_get(v, "config");
    const char *class_name = text_at(v, "class_name");
    if (!class_name) return KEEL_OK;
    if (!strncmp(class_name, "Custom>", 7) && keel_optimizer_find(class_name + 7)) {
        json_t *own = json_string(class_name + 7);
        if (!set(v, "class_name", own)) return no_memory();
        class_name = json_string_value(own);
    }
    KEEL_TRY(add_module(v, "keras.optimizers"));
    KEEL_TRY(rename_keys(config, class_name, of_optimizers,
                         sizeof of_optimizers / sizeof *of_optimizers));
    return read_decay(config);
}

/* Keras 2 wraps functions: {"class_name": "MeanMetricWrapper", "config": {"name": "accuracy", "fn":
 * "binary_accuracy"}} is BinaryAccuracy with that name, and so are losses. What is of a class
 * itself names its function, too. */
static keel_status read_function(json_t *v, const keel_type *(*find)(const char *))
{
    json_t *config = json_object_get(v, "config");
    const char *fn = text_at(config, "fn"), *class_name = text_at(v, "class_name");
    const keel_type *type = fn ? find(fn) : NULL;
    const bool wrapper =
        !strcmp(class_name, "MeanMetricWrapper") || !strcmp(class_name, "LossFunctionWrapper");
    if (!type || (!wrapper && strcmp(class_name, type->name) != 0)) return KEEL_OK;
    json_object_del(config, "fn");
    return set(v, "class_name", json_string(type->name)) ? KEEL_OK : no_memory();
}

/* A name, an object with a class, or lists and objects of them. */
static keel_status read_choice(json_t *v, bool metric, int depth)
{
    json_t *config = json_object_get(v, "config"), *entry;
    const char *key, *reduction = text_at(config, "reduction");
    size_t i;
    if (depth > ARGUMENTS_DEEP)
        return keel_fail(KEEL_EFORMAT, "training_config: nested too deeply");
    if (text_at(v, "class_name")) {
        if (reduction && !strcmp(reduction, "auto") &&
            !set(config, "reduction", json_string("sum_over_batch_size")))
            return no_memory();
        KEEL_TRY(read_function(v, metric ? keel_metric_find : keel_loss_find));
        return add_module(v, metric ? "keras.metrics" : "keras.losses");
    }
    json_object_foreach(v, key, entry) KEEL_TRY(read_choice(entry, metric, depth + 1));
    json_array_foreach(v, i, entry) KEEL_TRY(read_choice(entry, metric, depth + 1));
    return KEEL_OK;
}

/* Keras 2 has a list of metrics for each output; for a single output that is just the list. */
static keel_status unfold(json_t *training, const char *key)
{
    json_t *only = json_array_get(json_object_get(training, key), 0);
    if (json_array_size(json_object_get(training, key)) != 1 || !json_is_array(only))
        return KEEL_OK;
    return json_object_set(training, key, only) ? no_memory() : KEEL_OK;
}

static keel_status read_training(json_t *training)
{
    json_t *optimizer = json_object_get(training, "optimizer_config");
    if (!json_is_object(training))
        return keel_fail(KEEL_EFORMAT, "training_config: expected an object");
    if (optimizer && json_object_set(training, "optimizer", optimizer)) return no_memory();
    json_object_del(training, "optimizer_config");
    KEEL_TRY(read_optimizer(json_object_get(training, "optimizer")));
    KEEL_TRY(read_choice(json_object_get(training, "loss"), false, 0));
    KEEL_TRY(read_choice(json_object_get(training, "metrics"), true, 0));
    KEEL_TRY(read_choice(json_object_get(training, "weighted_metrics"), true, 0));
    KEEL_TRY(unfold(training, "metrics"));
    return unfold(training, "weighted_metrics");
}

keel_status keel_legacy_config(json_t *root, json_t *training)
{
    if (!text_at(root, "class_name")) return KEEL_OK; /* config.c refuses it */
    KEEL_TRY(keel_legacy_names(root));
    KEEL_TRY(read_layer(root, 0));
    if (!training) return KEEL_OK;
    KEEL_TRY(read_training(training));
    return json_object_set(root, "compile_config", training) ? no_memory() : KEEL_OK;
}
