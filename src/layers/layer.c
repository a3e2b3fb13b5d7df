/* What all layers share: finding them, the keys that every layer has (name, trainable, dtype), and
 * questions about images and axes that several layers ask. */
#include "layers/layer.h"
#include "base/memory.h"
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
    return keel_layer_registered(class_name);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_input(const keel_layer *l)
{
    return l->max_inputs == 0;
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
        if (class_name && strcmp(class_name, "DTypePolicy"))
            return keel_fail(KEEL_EUNSUP,
                             "dtype policy %s: only float32, mixed_bfloat16 and mixed_float16 are "
                             "supported",
                             class_name);
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
        KEEL_TRY(keel_dtype_find(&common->dtype, json_string_value(dtype)));
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
        failed = json_object_set_new(config, "trainable", json_boolean(common->trainable)) ||
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

/* ---- emitting -------------------------------------------------------------------------------- */

const keel_spec *keel_emit_in(const keel_emit *e, int i)
{
    return keel_graph_spec(e->graph, e->in[i]);
}

keel_status keel_emit_op(keel_emit *e, const keel_node_parts *parts, keel_value *out)
{
    return keel_graph_add(e->graph, parts, out, 1);
}

keel_status keel_emit_one(keel_emit *e, const keel_op *op, const void *args)
{
    const keel_node_parts parts = { .op = op, .args = args, .n_in = e->n_in, .in = e->in };
    return keel_emit_op(e, &parts, e->out);
}

const char *keel_held_in_list(int k)
{
    static const char *const keys[KEEL_HELD_IN_LIST_MAX] = { "0",  "1",  "2",  "3", "4",  "5",
                                                             "6",  "7",  "8",  "9", "10", "11",
                                                             "12", "13", "14", "15" };
    return keys[k];
}

keel_status keel_emit_on(keel_emit *e, const keel_op *op, const void *args, const keel_value *in,
                         int n_in, keel_value *out)
{
    const keel_node_parts parts = { .op = op, .args = args, .n_in = n_in, .in = in };
    return keel_emit_op(e, &parts, out);
}

keel_status keel_emit_weighted(keel_emit *e, const keel_op *op, const void *args,
                               const keel_variable *weight, const keel_spec *spec, int n_weight,
                               keel_value *out)
{
    const keel_node_parts parts = { .op = op,
                                    .args = args,
                                    .n_in = 1,
                                    .in = e->in,
                                    .n_weight = n_weight,
                                    .weight = weight,
                                    .weight_spec = spec };
    return keel_emit_op(e, &parts, out);
}

keel_status keel_emit_host(keel_emit *e, keel_host_op op, const keel_spec *spec, keel_value *out)
{
    return keel_graph_host_input(e->graph, e->in, e->n_in, op, e->args, spec, out);
}

keel_status keel_emit_outputs(keel_emit *e, int n)
{
    keel_value *out = keel_calloc((size_t)n, sizeof *out);
    keel_value *mask = keel_calloc((size_t)n, sizeof *mask);
    if (!out || !mask) {
        keel_free(out);
        keel_free(mask);
        return KEEL_ENOMEM;
    }
    for (int i = 0; i < n; i++) {
        out[i] = -1;
        mask[i] = KEEL_MASK_DEFAULT;
    }
    keel_free(e->out);
    keel_free(e->out_mask);
    e->n_out = n;
    e->out = out;
    e->out_mask = mask;
    return KEEL_OK;
}

int keel_emit_masked(const keel_emit *e)
{
    for (int i = 0; i < e->n_in; i++)
        if (e->mask[i] >= 0) return i;
    return -1;
}

static keel_status axis_of_row(const keel_shape *row, int64_t axis, int64_t *row_axis)
{
    const int64_t rank = row->rank + 1;
    if (axis < -rank || axis >= rank)
        return keel_fail(KEEL_EARG, "axis %lld: the input has %lld dims with the batch",
                         (long long)axis, (long long)rank);
    if (axis == 0 || axis == -rank)
        return keel_fail(KEEL_EUNSUP, "axis %lld is the batch: rows do not see each other",
                         (long long)axis);
    *row_axis = (axis < 0 ? axis + rank : axis) - 1;
    return KEEL_OK;
}

keel_status keel_emit_activation(keel_emit *e, const keel_object *activation, keel_value in,
                                 keel_value *out)
{
    const keel_activation *a = activation ? (const keel_activation *)activation->type : NULL;
    if (!a || !a->op) {
        *out = in;
        return KEEL_OK;
    }
    const void *args = a->op_args ? a->op_args : a->type.args_size ? activation->args : NULL;
    keel_axis_args along = { .axis = -1 };
    if (a->has_axis) {
        const keel_shape *row = &keel_graph_spec(e->graph, in)->shape;
        const int64_t axis = *(const int64_t *)args;
        if (axis != -1 && e->direct) /* TimeDistributed may call it on all steps at once */
            return keel_fail(KEEL_EUNSUP, "activation %s with axis %lld in a layer inside another",
                             a->type.name, (long long)axis);
        KEEL_TRY(axis_of_row(row, axis, &along.axis));
        if (along.axis == row->rank - 1) along.axis = -1;
        args = &along;
    }
    return keel_emit_op(e, &(keel_node_parts){ .op = a->op, .args = args, .n_in = 1, .in = &in },
                        out);
}

keel_status keel_emit_image(const keel_emit *e, const keel_spec **in)
{
    const keel_spec *spec = keel_emit_in(e, 0);
    char shape[96];
    if (spec->shape.rank != 3) {
        keel_shape_text(shape, &spec->shape);
        return keel_fail(KEEL_ESHAPE, "expected rows of (height, width, channels), got %s", shape);
    }
    *in = spec;
    return KEEL_OK;
}

keel_status keel_emit_view(keel_emit *e, const keel_shape *shape, keel_value in, keel_value *out)
{
    const keel_reshape_args as = { .shape = *shape };
    return keel_emit_on(e, &keel_op_reshape, &as, &in, 1, out);
}

keel_status keel_emit_as_image(keel_emit *e, int dims, keel_value *x, keel_shape *image)
{
    static const char *const rows[] = { NULL, "(steps, channels)", "(height, width, channels)",
                                        "(depth, height, width, channels)" };
    const keel_shape in = keel_emit_in(e, 0)->shape;
    char shape[96];
    *x = e->in[0];
    *image = in;
    if (in.rank != dims + 1) {
        keel_shape_text(shape, &in);
        return keel_fail(KEEL_ESHAPE, "expected rows of %s, got %s", rows[dims], shape);
    }
    if (dims > 1) return KEEL_OK;
    *image = KEEL_SHAPE(in.dim[0], 1, in.dim[1]);
    return keel_emit_view(e, image, e->in[0], x);
}

keel_status keel_emit_from_image(keel_emit *e, int dims, keel_value y, keel_value *out)
{
    const keel_shape *image = &keel_graph_spec(e->graph, y)->shape;
    *out = y;
    if (dims > 1) return KEEL_OK;
    const keel_shape steps = KEEL_SHAPE(image->dim[0], image->dim[2]);
    return keel_emit_view(e, &steps, y, out);
}

keel_ints keel_image_ints(const keel_ints *a)
{
    keel_ints image = *a;
    while (image.count < 2) image.at[image.count++] = 1;
    return image;
}

void keel_same_padding(const keel_shape *places, bool same, const keel_ints *size,
                       const keel_ints *strides, const keel_ints *dilation, int64_t *pad)
{
    for (int i = 0; i < size->count; i++) {
        const int64_t in = places->dim[i], stride = strides->at[i];
        const int64_t reach = (size->at[i] - 1) * (dilation ? dilation->at[i] : 1) + 1;
        const int64_t out = (in - 1) / stride + 1;
        const int64_t need = (out - 1) * stride + reach - in;
        pad[2 * i] = same && need > 0 ? need / 2 : 0;
        pad[2 * i + 1] = same && need > 0 ? need - need / 2 : 0;
    }
}

keel_status keel_row_axis(const keel_emit *e, int64_t axis, int64_t *row_axis)
{
    return axis_of_row(&keel_emit_in(e, 0)->shape, axis, row_axis);
}

keel_status keel_channels_last(int data_format)
{
    if (!data_format) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP, "data_format channels_first is not supported: use channels_last");
}

keel_status keel_emit_bias_weight(keel_emit *e, bool use, int64_t n, const keel_object *initializer,
                                  const keel_object *regularizer, const keel_object *constraint,
                                  keel_variable *w, keel_spec *spec, int *n_weight)
{
    if (!use) return KEEL_OK;
    const keel_weight_decl bias = { .name = "bias",
                                    .shape = KEEL_SHAPE(n),
                                    .initializer = initializer,
                                    .regularizer = regularizer,
                                    .constraint = constraint };
    KEEL_TRY(e->weight(e, &bias, &w[*n_weight], &spec[*n_weight]));
    (*n_weight)++;
    return KEEL_OK;
}
