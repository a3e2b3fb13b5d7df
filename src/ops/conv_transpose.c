/* Transposed convolution, as in Keras: x [B, D, H, W, C], kernel [KD, KH, KW, K, C], bias [K]. It
 * is the backward pass of a convolution from K to C channels: forward computes that convolution's
 * gradient with respect to its input, and backward is the convolution itself. Images and sequences
 * are volumes with dims of 1. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/convolve.h"
#include "ops/derive.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_conv_transpose_args *a = n->args;
    keel_window w;
    char text[96], from[96];
    KEEL_TRY(keel_infer_check(n, 1, 1, 2));
    KEEL_TRY(keel_infer_volume(n));
    const keel_shape *kernel = &n->weight[0].shape, *in = &n->in[0].shape;
    keel_shape_text(text, kernel);
    keel_shape_text(from, in);
    if (kernel->rank != 5 || kernel->dim[4] != in->dim[3])
        return keel_fail(KEEL_ESHAPE,
                         "conv_transpose: kernel is %s; an input of %s needs (depth, height, "
                         "width, filters, %lld)",
                         text, from, (long long)in->dim[3]);
    const keel_shape bias = KEEL_SHAPE(kernel->dim[3]);
    if (n->n_weight > 1) KEEL_TRY(keel_infer_weight(n, 1, "bias", &bias));
    const keel_shape out = KEEL_SHAPE(a->to[0], a->to[1], a->to[2], kernel->dim[3]);
    for (int d = 0; d < 3; d++)
        if (out.dim[d] < 1)
            return keel_fail(KEEL_ESHAPE, "conv_transpose: input is %s and leaves no output", from);
    KEEL_TRY(keel_infer_out(n, &out));
    KEEL_TRY(keel_window_over(&w, n, &out, "kernel", kernel->dim, a->strides, a->dilation, a->pad));
    keel_shape_text(text, &out);
    for (int d = 0; d < 3; d++)
        if (w.out[d] != in->dim[d])
            return keel_fail(KEEL_ESHAPE,
                             "conv_transpose: an output of %s does not belong to an input of %s",
                             text, from);
    return KEEL_OK;
}

/* The convolution of which this is the backward pass. */
static conv conv_of(const keel_call *call)
{
    const keel_node *n = call->node;
    const keel_conv_transpose_args *a = n->args;
    const keel_shape *x = &n->out[0].shape, *y = &n->in[0].shape;
    conv v = conv_between(
        x, y, 1, call->rows,
        keel_window_between(x, y, n->weight[0].shape.dim, a->strides, a->dilation, a->pad));
    v.transposed = true;
    return v;
}

static double flops(const keel_node *n)
{
    return conv_flops(n, &n->in[0]);
}

#define REAL_FILE "ops/conv_transpose.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_conv_transpose_args *a = args;
    *a = (keel_conv_transpose_args){ .strides = { 1, 1, 1 }, .dilation = { 1, 1, 1 } };
    keel_case_ints(text, "strides", a->strides, 3);
    keel_case_ints(text, "dilation", a->dilation, 3);
    keel_case_ints(text, "pad", a->pad, 6);
    keel_case_ints(text, "to", a->to, 3);
}

/* The convolution of which this is the backward pass. */
static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_conv_transpose_args *a = d->node->args;
    keel_conv3d_args args = { .groups = 1 };
    memcpy(args.strides, a->strides, sizeof args.strides);
    memcpy(args.dilation, a->dilation, sizeof args.dilation);
    memcpy(args.pad, a->pad, sizeof args.pad);
    return keel_derive_weighted(d, &keel_op_conv3d, &args, d->grad, 0, out);
}

const keel_op keel_op_conv_transpose = {
    .name = "conv_transpose",
    .args_size = sizeof(keel_conv_transpose_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .flops = flops,
    .cases =
        (const keel_case[]){ { "2,3,3,3", "2,3,3,4,3|4", "to 3,5,5" },
                             { "1,3,4,2", "1,3,3,3,2", "strides 1,2,2 pad 0,0,0,1,0,1 to 1,6,8" },
                             { "1,3,1,5", "1,4,1,2,5|2", "strides 1,3,1 to 1,11,1" },
                             { "2,2,3,4", "2,2,3,6,4|6", "dilation 2,1,2 to 4,3,7" },
                             { "1,2,2,70", "1,1,1,66,70|66", "to 1,2,2" },
                             { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
#include "ops/sums.h"
#include "ops/convolve.h"
#endif
