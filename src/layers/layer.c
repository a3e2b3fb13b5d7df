/* What all layers share: finding them, the keys that every layer has (name, trainable, dtype), and
 * questions about images and axes that several layers ask. */
#include "layers/layer.h"
#include "base/memory.h"
#include "layers/package.h"
#include "ops/args.h"
#include "tensor/shape.h"
#include <string.h>

const keel_layer *keel_layer_find(const char *class_name)
{
    const bool operation = !strncmp(class_name, "ops.", 4);
    const char *name = class_name + (operation ? 4 : 0);
    for (int i = 0; keel_layers[i]; i++) {
        const keel_layer *l = keel_layers[i];
        if (l->operation == operation &&
            (!strcmp(l->type.name, name) || keel_name_listed(l->aliases, name)))
            return l;
    }
    if (!strcmp(class_name, KEEL_ADDED_LOSS)) return &keel_layer_added_loss;
    if (!strcmp(class_name, KEEL_DRAWN)) return &keel_layer_drawn;
    return keel_layer_registered(class_name);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_input(const keel_layer *l)
{
    return l->max_inputs == 0;
}

/* What Keras's quantize() makes of a policy: "int8_from_float32", "gptq/4/128_from_float32", or one
 * of several classes with a mode. */
static bool is_quantized(const char *name)
{
    static const char *const mode[] = { "int8", "int4", "float8", "gptq", "awq" };
    bool found = false;
    for (size_t i = 0; i < sizeof mode / sizeof *mode; i++)
        found = found || !strncmp(name, mode[i], strlen(mode[i]));
    return found;
}

static keel_status refuse_policy(const char *class_name, const json_t *config)
{
    const char *mode = json_string_value(json_object_get(config, "mode"));
    if (mode && is_quantized(mode))
        return keel_fail(KEEL_EUNSUP,
                         "dtype policy %.60s of mode %.40s: quantized layers are not supported: "
                         "train before quantize()",
                         class_name, mode);
    if (!strcmp(class_name, "DTypePolicyMap"))
        return keel_fail(KEEL_EUNSUP, "dtype policy DTypePolicyMap: what is inside a layer has the "
                                      "layer's policy here");
    return keel_fail(KEEL_EUNSUP,
                     "dtype policy %.60s: only float32, mixed_bfloat16 and mixed_float16 are "
                     "supported",
                     class_name);
}

/* The name of a policy, or Keras's DTypePolicy with a name. For a layer that makes integers when
 * rows are read (`indices`) it may be their type. */
static keel_status read_dtype(const json_t *dtype, bool indices, keel_dtype *compute)
{
    const char *name = NULL;
    if (!dtype || json_is_null(dtype)) return KEEL_OK;
    if (json_is_string(dtype))
        name = json_string_value(dtype);
    else if (json_is_object(dtype)) {
        const char *class_name = json_string_value(json_object_get(dtype, "class_name"));
        if (class_name && strcmp(class_name, "DTypePolicy") &&
            strcmp(class_name, "FloatDTypePolicy"))
            return refuse_policy(class_name, json_object_get(dtype, "config"));
        name = json_string_value(json_object_get(json_object_get(dtype, "config"), "name"));
    }
    if (!name) return keel_fail(KEEL_EARG, "dtype: expected a name or a DTypePolicy with a name");
    if (indices && (!strcmp(name, "int64") || !strcmp(name, "int32"))) return KEEL_OK;
    return keel_policy_find(name, compute);
}

keel_status keel_policy_find(const char *name, keel_dtype *compute)
{
    static const keel_dtype all[] = { KEEL_FLOAT32, KEEL_BFLOAT16, KEEL_FLOAT16 };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(name, keel_policy_name(all[i]))) {
            *compute = all[i];
            return KEEL_OK;
        }
    if (strstr(name, "_from_") && is_quantized(name))
        return keel_fail(KEEL_EUNSUP,
                         "dtype '%.40s': quantized layers are not supported: train before "
                         "quantize()",
                         name);
    return keel_fail(KEEL_EUNSUP,
                     "dtype '%.40s': only float32, mixed_bfloat16 and mixed_float16 are supported",
                     name);
}

const char *keel_policy_name(keel_dtype compute)
{
    return compute == KEEL_BFLOAT16  ? "mixed_bfloat16"
           : compute == KEEL_FLOAT16 ? "mixed_float16"
                                     : "float32";
}

json_t *keel_policy_json(keel_dtype compute)
{
    return json_pack("{s:s,s:s,s:{s:s},s:n}", "module", "keras", "class_name", "DTypePolicy",
                     "config", "name", keel_policy_name(compute), "registered_name");
}

static keel_status read_dims(const char *key, const json_t *dims, size_t first, keel_shape *shape)
{
    if (!json_is_array(dims) || json_array_size(dims) < first)
        return keel_fail(KEEL_EARG, "%s: expected a list of dims", key);
    if (json_array_size(dims) - first > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "%s: %zu dims; a row has at most %d", key,
                         json_array_size(dims) - first, KEEL_RANK_MAX);
    shape->rank = (int)(json_array_size(dims) - first);
    for (int i = 0; i < shape->rank; i++) {
        const json_t *d = json_array_get(dims, first + (size_t)i);
        const bool open = json_is_null(d) || json_integer_value(d) == KEEL_DIM_OPEN;
        if (!open && (!json_is_integer(d) || json_integer_value(d) < 1))
            return keel_fail(KEEL_EARG,
                             "%s: dim %zu must be a whole number above 0, or null where it is open",
                             key, first + (size_t)i);
        shape->dim[i] = open ? KEEL_DIM_OPEN : json_integer_value(d);
    }
    const keel_shape least = keel_shape_closed(shape, 1);
    return keel_shape_check(&least, sizeof(double));
}

json_t *keel_dim_json(int64_t dim)
{
    return dim == KEEL_DIM_OPEN ? json_null() : json_integer(dim);
}

static keel_status read_batch(const char *key, const json_t *batch, int64_t *out)
{
    if (!batch || json_is_null(batch)) return KEEL_OK;
    if (!json_is_integer(batch) || json_integer_value(batch) < 1)
        return keel_fail(KEEL_EARG, "%s: the batch size must be null or a number above 0", key);
    *out = json_integer_value(batch);
    return KEEL_OK;
}

static keel_status read_input_shape(const json_t *config, keel_layer_common *common)
{
    const json_t *batch_shape = json_object_get(config, "batch_shape");
    const json_t *shape = json_object_get(config, "shape");
    if (!batch_shape) batch_shape = json_object_get(config, "batch_input_shape");
    common->batch = -1;
    if (batch_shape && !json_is_null(batch_shape)) {
        KEEL_TRY(read_dims("batch_shape", batch_shape, 1, &common->shape));
        return read_batch("batch_shape", json_array_get(batch_shape, 0), &common->batch);
    }
    if (!shape) return keel_fail(KEEL_EARG, "shape: must be given");
    KEEL_TRY(read_dims("shape", shape, 0, &common->shape));
    return read_batch("batch_size", json_object_get(config, "batch_size"), &common->batch);
}

/* The input of a model that is made when it is called has the type of what layers compute. */
static keel_status find_input_dtype(keel_dtype *out, const char *name)
{
    return keel_dtype_find_narrow(out, name) ? KEEL_OK : keel_dtype_find(out, name);
}

static keel_status read_common(const keel_layer *l, const json_t *config, keel_layer_common *common)
{
    const json_t *name = json_object_get(config, "name");
    const json_t *trainable = json_object_get(config, "trainable");
    if (name && !json_is_null(name)) {
        common->name = json_string_value(name);
        if (!common->name || !*common->name || strlen(common->name) > 200)
            return keel_fail(KEEL_EARG, "name: expected a text of 1 to 200 bytes");
        if (strchr(common->name, '/'))
            return keel_fail(KEEL_EARG, "name '%s': '/' separates a layer from its weight",
                             common->name);
    }
    if (trainable && !json_is_boolean(trainable))
        return keel_fail(KEEL_EARG, "trainable: expected true or false");
    common->trainable = !trainable || json_is_true(trainable);
    const json_t *dtype = json_object_get(config, "dtype");
    if (is_input(l) && json_is_string(dtype) && strncmp(json_string_value(dtype), "mixed_", 6))
        KEEL_TRY(find_input_dtype(&common->dtype, json_string_value(dtype)));
    else if (!l->operation)
        KEEL_TRY(read_dtype(dtype, l->reads_rows, &common->compute));
    if (!is_input(l)) return KEEL_OK;
    /* the type of an input is that of its data, whatever layers make of it */
    common->compute = KEEL_FLOAT32;
    return read_input_shape(config, common);
}

keel_status keel_layer_read(const keel_layer *l, const json_t *config, void *args,
                            keel_layer_common *common)
{
    static const char *const of_all[] = { "name", "trainable", "dtype", "activity_regularizer" };
    static const char *const of_input[] = { "batch_shape", "batch_input_shape", "shape",
                                            "batch_size" };
    keel_status s = KEEL_OK;
    keel_layer_common got = { .trainable = true, .batch = -1 };
    json_t *rest = NULL;
    if (config && !json_is_object(config)) {
        s = keel_fail(KEEL_EARG, "config: expected an object");
        goto out;
    }
    if ((s = read_common(l, config, &got)) < 0) goto out;
    rest = config ? json_copy((json_t *)config) : json_object();
    if (!rest) {
        s = keel_fail(KEEL_ENOMEM, "out of memory reading a layer");
        goto out;
    }
    if (!l->operation && !is_input(l)) {
        const json_t *activity = json_object_get(config, "activity_regularizer");
        s = activity ? keel_object_read(&got.activity, activity, keel_regularizer_find,
                                        "activity_regularizer")
                     : KEEL_OK;
        if (s < 0) goto out;
    }
    /* an operation only has a name; a dtype is its own argument */
    for (size_t i = 0; i < (l->operation ? 1 : sizeof of_all / sizeof *of_all); i++)
        json_object_del(rest, of_all[i]);
    for (size_t i = 0; is_input(l) && i < sizeof of_input / sizeof *of_input; i++)
        json_object_del(rest, of_input[i]);
    if ((s = keel_fields_read(&l->type, rest, args)) < 0) goto out;
    *common = got;
    got.activity = (keel_object){ 0 };
out:
    json_decref(rest);
    keel_object_free(&got.activity);
    if (s < 0 && got.name) s = keel_fail_within(s, "layer '%s'", got.name);
    return s;
}

keel_status keel_layer_config(const keel_layer *l, const void *args,
                              const keel_layer_common *common, json_t **out)
{
    keel_status s = KEEL_OK;
    json_t *config = keel_fields_json(&l->type, args);
    int failed = !config || json_object_set_new(config, "name", json_string(common->name));
    if (!failed && is_input(l)) {
        json_t *dims = json_array();
        failed = json_array_append_new(dims, common->batch < 0 ? json_null()
                                                               : json_integer(common->batch));
        for (int i = 0; !failed && i < common->shape.rank; i++)
            failed = json_array_append_new(dims, keel_dim_json(common->shape.dim[i]));
        if (failed) json_decref(dims);
        failed =
            failed || json_object_set_new(config, "batch_shape", dims) ||
            json_object_set_new(config, "dtype", json_string(keel_dtype_name(common->dtype))) ||
            json_object_set_new(config, "sparse", json_false());
    } else if (!failed && !l->operation) {
        failed = (!l->untrained &&
                  json_object_set_new(config, "trainable", json_boolean(common->trainable))) ||
                 json_object_set_new(config, "dtype", keel_policy_json(common->compute));
        if (!failed && common->activity.type)
            failed = json_object_set_new(config, "activity_regularizer",
                                         keel_object_json(&common->activity));
    }
    if (failed) {
        s = keel_fail(KEEL_ENOMEM, "out of memory writing layer '%s'", common->name);
        goto out;
    }
    if (l->to_config && (s = l->to_config(args, config)) < 0) goto out;
    *out = config;
    config = NULL;
out:
    json_decref(config);
    return s;
}

const char *keel_held_in_list(int k)
{
    static const char *const keys[KEEL_HELD_IN_LIST_MAX] = { "0",  "1",  "2",  "3", "4",  "5",
                                                             "6",  "7",  "8",  "9", "10", "11",
                                                             "12", "13", "14", "15" };
    return keys[k];
}
