/* 3-D convolution (cross-correlation, as in Keras): x [B, D, H, W, C], kernel [KD, KH, KW, C/G, K],
 * bias [K]; see ops/convolve.h. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/convolve.h"
#include "ops/derive.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_conv3d_args *a = n->args;
    keel_window w;
    KEEL_TRY(keel_infer_check(n, 1, 1, 2));
    KEEL_TRY(keel_infer_volume(n));
    KEEL_TRY(conv_kernel(n, 3, n->in[0].shape.dim[3], a->groups));
    const int64_t *kernel = n->weight[0].shape.dim;
    const keel_shape bias = KEEL_SHAPE(kernel[4]);
    if (n->n_weight > 1) KEEL_TRY(keel_infer_weight(n, 1, "bias", &bias));
    KEEL_TRY(keel_window_init(&w, n, "kernel", kernel, a->strides, a->dilation, a->pad));
    const keel_shape out = KEEL_SHAPE(w.out[0], w.out[1], w.out[2], kernel[4]);
    return keel_infer_out(n, &out);
}

static conv conv_of(const keel_call *call)
{
    const keel_node *n = call->node;
    const keel_conv3d_args *a = n->args;
    return conv_between(&n->in[0].shape, &n->out[0].shape, a->groups, call->rows,
                        keel_window_of(n, n->weight[0].shape.dim, a->strides, a->dilation, a->pad));
}

static double flops(const keel_node *n)
{
    return conv_flops(n, &n->out[0]);
}

#define REAL_FILE "ops/conv3d.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_conv3d_args *a = args;
    *a = (keel_conv3d_args){ .strides = { 1, 1, 1 }, .dilation = { 1, 1, 1 }, .groups = 1 };
    keel_case_ints(text, "strides", a->strides, 3);
    keel_case_ints(text, "dilation", a->dilation, 3);
    keel_case_ints(text, "pad", a->pad, 6);
    keel_case_ints(text, "groups", &a->groups, 1);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_conv3d_args *a = d->node->args;
    keel_conv_transpose_args args = { 0 };
    if (a->groups != 1)
        return keel_fail(KEEL_EUNSUP, "conv3d: its gradient cannot be differentiated with groups");
    memcpy(args.strides, a->strides, sizeof args.strides);
    memcpy(args.dilation, a->dilation, sizeof args.dilation);
    memcpy(args.pad, a->pad, sizeof args.pad);
    memcpy(args.to, d->node->in[0].shape.dim, sizeof args.to);
    return keel_derive_weighted(d, &keel_op_conv_transpose, &args, d->grad, 0, out);
}

const keel_op keel_op_conv3d = {
    .name = "conv3d",
    .args_size = sizeof(keel_conv3d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .flops = flops,
    .cases = (const keel_case[]){ { "3,4,5,3", "2,3,3,3,4|4", NULL },
                                  { "3,4,2,2", "3,3,3,2,3", "pad 1,1,1,1,1,1" },
                                  { "4,5,6,2", "2,3,2,2,2|2", "strides 2,1,2 pad 1,0,0,1,1,0" },
                                  { "5,4,5,4", "2,2,3,2,6|6",
                                    "dilation 2,2,2 groups 2 pad 1,1,0,1,2,2" },
                                  { "2,2,3,5", "1,1,1,5,66|66", NULL },
                                  { "7,3,5,1", "2,2,3,1,2", "strides 3,1,2 pad 1,0,2,2,0,1" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
#include "ops/sums.h"
#include "ops/convolve.h"
#endif
