/* Short forms of what layers emit, and questions about images and axes that several layers ask. */
#include "base/memory.h"
#include "layers/layer.h"
#include "ops/args.h"
#include "tensor/narrow.h"
#include <string.h>

const keel_spec *keel_emit_in(const keel_emit *e, int i)
{
    return keel_graph_spec(e->graph, e->in[i]);
}

bool keel_emit_is_whole(const keel_emit *e, int i)
{
    return e->whole ? e->whole[i] : !keel_dtype_flows(keel_emit_in(e, i)->dtype);
}

keel_status keel_emit_not_whole(const keel_emit *e, const char *why)
{
    if (!keel_emit_is_whole(e, 0)) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP,
                     "its input is of whole numbers, and %s: cast it to float32 before", why);
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

double keel_emit_constant(const keel_emit *e, double x)
{
    return keel_real_as(e->graph->held, x);
}

keel_status keel_emit_on(keel_emit *e, const keel_op *op, const void *args, const keel_value *in,
                         int n_in, keel_value *out)
{
    const keel_node_parts parts = { .op = op, .args = args, .n_in = n_in, .in = in };
    return keel_emit_op(e, &parts, out);
}

keel_status keel_emit_weight(keel_emit *e, const keel_weight_decl *d, keel_weights *w)
{
    KEEL_TRY(e->weight(e, d, &w->of[w->n], &w->spec[w->n]));
    w->n++;
    return KEEL_OK;
}

keel_status keel_emit_weighted_on(keel_emit *e, const keel_op *op, const void *args,
                                  const keel_value *in, int n_in, const keel_weights *w,
                                  keel_value *out)
{
    const keel_node_parts parts = { .op = op,
                                    .args = args,
                                    .n_in = n_in,
                                    .in = in,
                                    .n_weight = w->n,
                                    .weight = w->of,
                                    .weight_spec = w->spec };
    return keel_emit_op(e, &parts, out);
}

keel_status keel_emit_weighted(keel_emit *e, const keel_op *op, const void *args, keel_value in,
                               const keel_weights *w, keel_value *out)
{
    return keel_emit_weighted_on(e, op, args, &in, 1, w, out);
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

keel_status keel_call_arguments(const keel_emit *e, const char *const *names, const json_t **out)
{
    const json_t *args = json_object_get(e->call, "args");
    const char *key;
    json_t *v;
    size_t n = 0, k;
    for (; names[n]; n++) out[n] = json_array_get(args, n);
    if (json_array_size(args) > n)
        return keel_fail(KEEL_EARG, "%zu arguments", json_array_size(args));
    json_object_foreach(json_object_get(e->call, "kwargs"), key, v)
    {
        for (k = 0; k < n && strcmp(names[k], key) != 0;) k++;
        if (k == n)
            return keel_fail(KEEL_EUNSUP, "it is called with the argument '%.60s': not supported",
                             key);
        out[k] = v;
    }
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
    keel_relu_args capped;
    if (a->op == &keel_op_relu && args) { /* Keras's ReLU compares in the type of the values */
        capped = *(const keel_relu_args *)args;
        capped.max_value = keel_emit_constant(e, capped.max_value);
        capped.threshold = keel_emit_constant(e, capped.threshold);
        args = &capped;
    }
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
    *out = in;
    if (keel_shape_equal(shape, &keel_graph_spec(e->graph, in)->shape)) return KEEL_OK;
    return keel_emit_on(e, &keel_op_reshape, &as, &in, 1, out);
}

keel_status keel_emit_permuted(keel_emit *e, const int64_t *from, keel_value x, keel_value *out)
{
    const int rank = keel_graph_spec(e->graph, x)->shape.rank;
    keel_permute_args args = { 0 };
    bool moves = false;
    for (int d = 0; d < rank; d++) {
        args.from[d] = from[d];
        moves = moves || from[d] != d;
    }
    *out = x;
    return moves ? keel_emit_on(e, &keel_op_permute, &args, &x, 1, out) : KEEL_OK;
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

keel_shape keel_shape_with_one(keel_shape s, int64_t place)
{
    for (int d = s.rank++; d > place; d--) s.dim[d] = s.dim[d - 1];
    s.dim[place] = 1;
    return s;
}

keel_shape keel_shape_without(keel_shape s, int64_t place)
{
    s.rank--;
    for (int d = (int)place; d < s.rank; d++) s.dim[d] = s.dim[d + 1];
    return s;
}

keel_status keel_emit_part(keel_emit *e, keel_value in, int64_t axis, int64_t begin, int64_t count,
                           keel_value *out)
{
    keel_slice_args op = keel_slice_all(&keel_graph_spec(e->graph, in)->shape);
    op.begin[axis] = begin;
    op.count[axis] = count;
    return keel_emit_on(e, &keel_op_slice, &op, &in, 1, out);
}

keel_status keel_emit_reversed(keel_emit *e, keel_value in, int64_t axis, keel_value *out)
{
    keel_slice_args op = keel_slice_all(&keel_graph_spec(e->graph, in)->shape);
    op.begin[axis] = op.count[axis] - 1;
    op.step[axis] = -1;
    return keel_emit_on(e, &keel_op_slice, &op, &in, 1, out);
}

keel_status keel_emit_place(keel_emit *e, keel_value in, int64_t at, keel_value *out)
{
    const keel_shape rest = keel_shape_without(keel_graph_spec(e->graph, in)->shape, 0);
    keel_value one;
    KEEL_TRY(keel_emit_part(e, in, 0, at, 1, &one));
    return keel_emit_view(e, &rest, one, out);
}
