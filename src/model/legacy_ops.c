/* Operations of TensorFlow between layers, which Keras 2 keeps as layers (TFOpLambda,
 * SlicingOpLambda) with the name of the function, as operations of keras.ops. The table says which
 * those are: the parameters that are values of the model become the operation's arguments in their
 * order, the others its configuration. */
#include "base/text.h"
#include "model/parts.h"
#include <string.h>

enum { VALUES = 2, SETTINGS = 3 };

typedef struct setting {
    const char *theirs, *ours;
    const char *dflt; /* JSON: what TensorFlow takes if it is not given; NULL: as Keras */
} setting;

typedef struct operation {
    const char *function; /* "a|b": of TensorFlow */
    const char *class_name, *module;
    const char *values[VALUES]; /* TensorFlow's names; the first is its first parameter */
    setting settings[SETTINGS];
} operation;

/* clang-format off */
#define UNARY(function, class_name, module) { function, class_name, module, { "x" }, { { 0 } } }
#define BINARY(function, class_name) { function, class_name, "numpy", { "x", "y" }, { { 0 } } }
#define OVER(function, class_name)                                                                \
    { function, class_name, "numpy", { "input_tensor" },                                          \
      { { "axis", "axis", "null" }, { "keepdims", "keepdims", "false" } } }
static const operation operations[] = {
    BINARY("math.add|__operators__.add", "Add"),
    BINARY("math.subtract", "Subtract"),
    BINARY("math.multiply", "Multiply"),
    BINARY("math.truediv|math.divide", "TrueDivide"),
    BINARY("math.floordiv", "FloorDivide"),
    BINARY("math.pow", "Power"),
    BINARY("math.maximum", "Maximum"),
    BINARY("math.minimum", "Minimum"),
    BINARY("math.greater", "Greater"),
    BINARY("math.greater_equal", "GreaterEqual"),
    BINARY("math.less", "Less"),
    BINARY("math.less_equal", "LessEqual"),
    BINARY("math.equal|__operators__.eq", "Equal"),
    BINARY("math.not_equal|__operators__.ne", "NotEqual"),
    BINARY("math.logical_and", "LogicalAnd"),
    BINARY("math.logical_or", "LogicalOr"),
    UNARY("math.logical_not", "LogicalNot", "numpy"),
    UNARY("math.negative", "Negative", "numpy"),
    UNARY("math.abs", "Absolute", "numpy"),
    UNARY("math.exp", "Exp", "numpy"),
    UNARY("math.log", "Log", "numpy"),
    UNARY("math.log1p", "Log1p", "numpy"),
    UNARY("math.expm1", "Expm1", "numpy"),
    UNARY("math.sqrt", "Sqrt", "numpy"),
    UNARY("math.rsqrt", "Rsqrt", "math"),
    UNARY("math.square", "Square", "numpy"),
    UNARY("math.sin", "Sin", "numpy"),
    UNARY("math.cos", "Cos", "numpy"),
    UNARY("math.tanh", "Tanh", "numpy"),
    UNARY("math.sign", "Sign", "numpy"),
    UNARY("math.floor", "Floor", "numpy"),
    UNARY("math.ceil", "Ceil", "numpy"),
    UNARY("math.reciprocal", "Reciprocal", "numpy"),
    UNARY("math.sigmoid", "Sigmoid", "nn"),
    { "math.softplus", "Softplus", "nn", { "features" }, { { 0 } } },
    { "nn.softsign", "Softsign", "nn", { "features" }, { { 0 } } },
    { "nn.relu", "Relu", "nn", { "features" }, { { 0 } } },
    { "nn.relu6", "Relu6", "nn", { "features" }, { { 0 } } },
    { "nn.elu", "Elu", "nn", { "features" }, { { 0 } } },
    { "nn.selu", "Selu", "nn", { "features" }, { { 0 } } },
    { "nn.silu", "Silu", "nn", { "features" }, { { 0 } } },
    { "nn.leaky_relu", "LeakyRelu", "nn", { "features" },
      { { "alpha", "negative_slope", "0.2" } } },
    { "nn.gelu", "Gelu", "nn", { "features" }, { { "approximate", "approximate", "false" } } },
    { "nn.softmax", "Softmax", "nn", { "logits" }, { { "axis", "axis", "-1" } } },
    { "nn.log_softmax", "LogSoftmax", "nn", { "logits" }, { { "axis", "axis", "-1" } } },
    OVER("math.reduce_mean", "Mean"),
    OVER("math.reduce_sum", "Sum"),
    OVER("math.reduce_max", "Max"),
    OVER("math.reduce_min", "Min"),
    OVER("math.reduce_prod", "Prod"),
    { "math.argmax", "Argmax", "numpy", { "input" }, { { "axis", "axis", "0" } } },
    { "linalg.matmul", "Matmul", "numpy", { "a", "b" }, { { 0 } } },
    { "reshape", "Reshape", "numpy", { "tensor" }, { { "shape", "newshape", NULL } } },
    { "expand_dims", "ExpandDims", "numpy", { "input" }, { { "axis", "axis", NULL } } },
    { "squeeze|compat.v1.squeeze", "Squeeze", "numpy", { "input" }, { { "axis", "axis", "null" } } },
    { "transpose|compat.v1.transpose", "Transpose", "numpy", { "a" }, { { "perm", "axes", "null" } } },
    { "tile", "Tile", "numpy", { "input" }, { { "multiples", "repeats", NULL } } },
    { "concat", "Concatenate", "numpy", { "values" }, { { "axis", "axis", NULL } } },
    { "stack", "Stack", "numpy", { "values" }, { { "axis", "axis", "0" } } },
    { "cast", "Cast", "core", { "x" }, { { "dtype", "dtype", NULL } } },
    { "clip_by_value", "Clip", "numpy", { "t" },
      { { "clip_value_min", "x_min", NULL }, { "clip_value_max", "x_max", NULL } } },
    { "one_hot", "OneHot", "nn", { "indices" },
      { { "depth", "num_classes", NULL }, { "axis", "axis", "-1" } } },
    { "stop_gradient", "StopGradient", "core", { "input" }, { { 0 } } },
    { "__operators__.getitem", "GetItem", "numpy", { "tensor", "slice_spec" }, { { 0 } } },
};
/* clang-format on */

static keel_status no_memory(void)
{
    return keel_fail(KEEL_ENOMEM, "out of memory reading the model");
}

static const char *text_at(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

bool keel_legacy_is_operation(const json_t *layer)
{
    const char *name = text_at(layer, "class_name");
    return name && (!strcmp(name, "TFOpLambda") || !strcmp(name, "SlicingOpLambda"));
}

static const operation *find(const char *function)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (keel_name_listed(operations[i].function, function)) return &operations[i];
    return NULL;
}

/* {"start", "stop", "step"} as the slice that Keras writes, also in a list: a new reference. */
static json_t *key_of(const json_t *v)
{
    const json_t *entry;
    size_t i;
    if (json_object_get(v, "start") && !json_object_get(v, "class_name"))
        return json_pack("{s:s,s:{s:O,s:O,s:O}}", "class_name", "__slice__", "config", "start",
                         json_object_get(v, "start"), "stop", json_object_get(v, "stop"), "step",
                         json_object_get(v, "step"));
    if (json_object_get(v, "class_name") && !json_object_get(v, "config")) /* "..." */
        return json_pack("{s:O,s:{}}", "class_name", json_object_get(v, "class_name"), "config");
    if (!json_is_array(v)) return json_incref((json_t *)v);
    json_t *list = json_array();
    json_array_foreach(v, i, entry)
    {
        if (json_array_append_new(list, key_of(entry)) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

/* Moves a setting of the call into the configuration. All calls of the layer have the same. */
static keel_status take_setting(json_t *config, json_t *kwargs, const setting *s,
                                const char *function)
{
    json_t *v = json_object_get(kwargs, s->theirs), *had = json_object_get(config, s->ours);
    v = v ? json_incref(v) : s->dflt ? json_loads(s->dflt, JSON_DECODE_ANY, NULL) : NULL;
    if (!v)
        return keel_fail(KEEL_EUNSUP, "tf.%s: its argument '%s' is not in the file", function,
                         s->theirs);
    const bool same = !had || json_equal(had, v);
    const bool ok = same && json_object_set(config, s->ours, v) == 0;
    json_decref(v);
    json_object_del(kwargs, s->theirs);
    if (!same)
        return keel_fail(KEEL_EUNSUP, "tf.%s: a layer that is called with several values of '%s'",
                         function, s->theirs);
    return ok ? KEEL_OK : no_memory();
}

/* Turns one call, {"args", "kwargs"} with TensorFlow's names. */
static keel_status read_call(const operation *o, const char *function, json_t *config, json_t *call)
{
    json_t *args = json_object_get(call, "args"), *kwargs = json_object_get(call, "kwargs"), *v;
    const char *key;
    for (int i = 1; i < VALUES && o->values[i]; i++) {
        v = json_object_get(kwargs, o->values[i]);
        if (!v)
            return keel_fail(KEEL_EUNSUP, "tf.%s: its argument '%s' is not in the file", function,
                             o->values[i]);
        if (json_array_append_new(args, key_of(v))) return no_memory();
        json_object_del(kwargs, o->values[i]);
    }
    for (int i = 0; i < SETTINGS && o->settings[i].theirs; i++)
        KEEL_TRY(take_setting(config, kwargs, &o->settings[i], function));
    json_object_foreach(kwargs, key, v)
    {
        if (!json_is_null(v) && !json_is_false(v) && strcmp(key, "name") != 0)
            return keel_fail(KEEL_EUNSUP, "tf.%s: its argument '%.60s' is not supported", function,
                             key);
    }
    json_object_clear(kwargs);
    return KEEL_OK;
}

static keel_status turn(json_t *layer)
{
    json_t *config = json_object_get(layer, "config"), *call;
    json_t *function = json_incref(json_object_get(config, "function"));
    const char *name = json_string_value(function);
    const operation *o = name ? find(name) : NULL;
    size_t i;
    keel_status s = KEEL_OK;
    if (!o)
        s = keel_fail(KEEL_EUNSUP, "the function tf.%.60s between layers is not supported",
                      name ? name : "?");
    json_object_del(config, "function");
    json_object_del(config, "trainable");
    json_object_del(config, "dtype"); /* of the layer; the operation has none */
    json_array_foreach(json_object_get(layer, "inbound_nodes"), i, call)
    {
        if (s >= 0) s = read_call(o, name, config, call);
    }
    if (s >= 0 &&
        (json_object_set_new(layer, "class_name", json_string(o->class_name)) ||
         json_object_set_new(layer, "registered_name", json_string(o->class_name)) ||
         json_object_set_new(layer, "module", json_sprintf("keras.src.ops.%s", o->module))))
        s = no_memory();
    json_decref(function);
    return s;
}

keel_status keel_legacy_operation(json_t *layer)
{
    const char *name = text_at(json_object_get(layer, "config"), "name");
    const keel_status s = turn(layer);
    return s < 0 && s != KEEL_ENOMEM ? keel_fail_within(s, "layer '%.60s'", name ? name : "?") : s;
}
