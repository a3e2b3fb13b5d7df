/* See _conv_transpose.h. Sizes are those of TensorFlow: the output is as large as padding and
 * output_padding say, and is what a convolution of that padding would begin with. */
#include "layers/convolutional/_conv_transpose.h"
#include "ops/args.h"

enum { SAME = 1 };

/* A row as the volume that the op takes: dims of 1 come before its places. */
static keel_shape volume_of(const keel_shape *row, int dims)
{
    keel_shape v = KEEL_SHAPE(1, 1, 1, row->dim[dims]);
    for (int d = 0; d < dims; d++) v.dim[3 - dims + d] = row->dim[d];
    return v;
}

/* The number of outputs in one dim, and how many places the convolution from them pads before them.
 */
static keel_status one_dim(const keel_conv_transposed *a, int d, int64_t in, int64_t *to,
                           int64_t *before)
{
    const int64_t stride = a->strides.at[d], size = a->kernel_size.at[d];
    const int64_t reach = (size - 1) * a->dilation_rate.at[d] + 1;
    const int64_t more = a->output_padding.count < 0 ? -1 : a->output_padding.at[d];
    if (more >= stride)
        return keel_fail(KEEL_EARG, "output_padding %lld is not less than the stride, %lld",
                         (long long)more, (long long)stride);
    if (a->padding != SAME) {
        *to = (in - 1) * stride + (more >= 0 ? reach + more : reach > stride ? reach : stride);
        *before = 0;
        return KEEL_OK;
    }
    *to = more < 0 ? in * stride : (in - 1) * stride + reach % 2 + more;
    if (*to < 1 || (*to - 1) / stride + 1 != in)
        return keel_fail(KEEL_ESHAPE,
                         "output_padding %lld makes %lld outputs of %lld inputs, where padding "
                         "'same' has other numbers",
                         (long long)more, (long long)*to, (long long)in);
    const int64_t need = (in - 1) * stride + reach - *to;
    *before = need > 0 ? need / 2 : 0;
    return KEEL_OK;
}

static keel_status args_of(const keel_emit *e, int dims, const keel_shape *row,
                           keel_conv_transpose_args *op)
{
    const keel_conv_transposed *a = e->args;
    *op = (keel_conv_transpose_args){ .strides = { 1, 1, 1 },
                                      .dilation = { 1, 1, 1 },
                                      .to = { 1, 1, 1 } };
    for (int d = 0; d < dims; d++) {
        const int at = 3 - dims + d;
        const int64_t reach = (a->kernel_size.at[d] - 1) * a->dilation_rate.at[d] + 1;
        KEEL_TRY(one_dim(a, d, row->dim[d], &op->to[at], &op->pad[2 * at]));
        const int64_t after = (row->dim[d] - 1) * a->strides.at[d] + reach - op->to[at] -
                              op->pad[2 * at]; /* below 0: outputs that no input reaches */
        op->pad[2 * at + 1] = after > 0 ? after : 0;
        op->strides[at] = a->strides.at[d];
        op->dilation[at] = a->dilation_rate.at[d];
    }
    return KEEL_OK;
}

/* [size.., filters, C], with dims of 1 before it for the op. */
static keel_status kernel_weight(keel_emit *e, int dims, int64_t channels, keel_weights *w)
{
    const keel_conv_transposed *a = e->args;
    keel_shape shape = { .rank = dims + 2 };
    for (int d = 0; d < dims; d++) shape.dim[d] = a->kernel_size.at[d];
    shape.dim[dims] = a->filters;
    shape.dim[dims + 1] = channels;
    KEEL_TRY(keel_emit_kernel(e, &a->weights, &shape, 0, w));
    w->spec[0].shape = KEEL_SHAPE(1, 1, 1, a->filters, channels);
    for (int d = 0; d < dims; d++) w->spec[0].shape.dim[3 - dims + d] = a->kernel_size.at[d];
    return KEEL_OK;
}

keel_status keel_emit_conv_transpose(keel_emit *e, int dims)
{
    const keel_conv_transposed *a = e->args;
    keel_conv_transpose_args op;
    keel_shape row, out = { .rank = dims + 1 };
    const keel_shape bias = KEEL_SHAPE(a->filters);
    keel_weights w = { 0 };
    keel_value x, y;
    KEEL_TRY(keel_emit_as_image(e, dims, &x, &row));
    row = keel_emit_in(e, 0)->shape;
    KEEL_TRY(args_of(e, dims, &row, &op));
    KEEL_TRY(kernel_weight(e, dims, row.dim[dims], &w));
    KEEL_TRY(keel_emit_bias(e, &a->weights, a->use_bias, &bias, &w));
    const keel_shape volume = volume_of(&row, dims);
    if (dims < 3) KEEL_TRY(keel_emit_view(e, &volume, e->in[0], &x));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_conv_transpose, &op, x, &w, &y));
    for (int d = 0; d < dims; d++) out.dim[d] = op.to[3 - dims + d];
    out.dim[dims] = a->filters;
    if (dims < 3) KEEL_TRY(keel_emit_view(e, &out, y, &y));
    return keel_emit_activation(e, &a->activation, y, e->out);
}
