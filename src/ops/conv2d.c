/* 2-D convolution (cross-correlation, as in Keras): x [B, H, W, C], kernel [KH, KW, C/G, K], bias
 * [K]; group g of G maps its C/G channels to its K/G outputs.
 *
 *     y[h, w, k] = b[k] + sum over i, j, c of x[h s - p + i d, w s - p + j d, c] kernel[i, j, c, k]
 *
 * The loops are those of ops/convolve.h. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/convolve.h"
#include "ops/derive.h"

static keel_status infer(keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    keel_window w;
    KEEL_TRY(keel_infer_check(n, 1, 1, 2));
    KEEL_TRY(keel_infer_image(n));
    KEEL_TRY(conv_kernel(n, 2, n->in[0].shape.dim[2], a->groups));
    const int64_t *kernel = n->weight[0].shape.dim;
    const keel_shape bias = KEEL_SHAPE(kernel[3]);
    if (n->n_weight > 1) KEEL_TRY(keel_infer_weight(n, 1, "bias", &bias));
    KEEL_TRY(keel_window_init(&w, n, "kernel", kernel, a->strides, a->dilation, a->pad));
    const keel_shape out = KEEL_SHAPE(w.out[0], w.out[1], kernel[3]);
    return keel_infer_out(n, &out);
}

static conv conv_of(const keel_call *call)
{
    const keel_node *n = call->node;
    const keel_conv2d_args *a = n->args;
    return conv_between(&n->in[0].shape, &n->out[0].shape, a->groups, call->rows,
                        keel_window_of(n, n->weight[0].shape.dim, a->strides, a->dilation, a->pad));
}

static double flops(const keel_node *n)
{
    return conv_flops(n, &n->out[0]);
}

#define REAL_FILE "ops/conv2d.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_conv2d_args *a = args;
    *a = (keel_conv2d_args){ .strides = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1 };
    keel_case_ints(text, "strides", a->strides, 2);
    keel_case_ints(text, "dilation", a->dilation, 2);
    keel_case_ints(text, "pad", a->pad, 4);
    keel_case_ints(text, "groups", &a->groups, 1);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_conv2d_args *a = d->node->args;
    const keel_shape *in = &d->node->in[0].shape, *y = &d->node->out[0].shape,
                     *w = &d->node->weight[0].shape;
    const keel_shape volume = KEEL_SHAPE(1, y->dim[0], y->dim[1], y->dim[2]);
    const keel_shape kernel = KEEL_SHAPE(1, w->dim[0], w->dim[1], w->dim[2], w->dim[3]);
    const keel_conv_transpose_args args = {
        .strides = { 1, a->strides[0], a->strides[1] },
        .dilation = { 1, a->dilation[0], a->dilation[1] },
        .pad = { 0, 0, a->pad[0], a->pad[1], a->pad[2], a->pad[3] },
        .to = { 1, in->dim[0], in->dim[1] },
    };
    int grad;
    if (a->groups != 1)
        return keel_fail(KEEL_EUNSUP, "conv2d: its gradient cannot be differentiated with groups");
    KEEL_TRY(keel_derive_reshape(d, d->grad, &volume, &grad));
    KEEL_TRY(d->emit(d, &keel_op_conv_transpose, &args, &grad, 1, 0, &kernel, &grad));
    return keel_derive_reshape(d, grad, in, out);
}

const keel_op keel_op_conv2d = {
    .name = "conv2d",
    .args_size = sizeof(keel_conv2d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .flops = flops,
    .cases = (const keel_case[]){ { "4,5,3", "3,3,3,4|4", NULL },
                                  { "4,4,2", "3,3,2,3", "pad 1,1,1,1" },
                                  { "5,6,2", "3,2,2,2|2", "strides 2,2 pad 0,1,1,0" },
                                  { "6,6,4", "3,3,2,6|6", "dilation 2,2 groups 2 pad 2,2,2,2" },
                                  { "3,3,5", "1,1,5,66|66", NULL },
                                  { "7,5,1", "2,3,1,2", "strides 3,1 pad 1,0,2,2" },
                                  { "9,1,3", "3,1,3,4|4", "pad 1,1,0,0" },
                                  { "1,10,1", "1,4,1,3|3", "pad 0,0,6,0 dilation 1,2" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
#include "ops/sums.h"
#include "ops/convolve.h"
#endif
