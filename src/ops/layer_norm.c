/* Layer normalisation (Ba, Kiros, Hinton 2016): over the last dims of each place,
 *
 *     y = gamma xhat + beta,  xhat = (x - mean) r,  r = 1 / sqrt(var + epsilon)
 *
 * with the biased variance, found in two passes. Forward saves mean and r of each place. With
 * g = gamma dy and means over the n elements of a place,
 *
 *     dx = r (g - mean(g) - xhat mean(g xhat));  dgamma = sum dy xhat;  dbeta = sum dy
 *
 * rms (Zhang, Sennrich 2019): mean is 0 and var the mean square; mean(g) is left out of dx. */
#ifndef REAL
#include "ops/derive.h"
#include "ops/layer_norm.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_layer_norm_check(n, 1));
    return keel_infer_out(n, &n->in[0].shape);
}

#define REAL_FILE "ops/layer_norm.c"
#include "ops/real.h"

/* dx as above: xhat and r are made again of x, so that they have gradients, too. */
static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_layer_norm_args *a = d->node->args;
    const int end = d->node->in[0].shape.rank, first = end - (int)a->dims;
    int x = d->in[0], g = d->grad, r, xhat, mean;
    if (!a->rms) {
        KEEL_TRY(keel_derive_reduce(d, KEEL_REDUCE_MEAN, first, end, x, &mean));
        KEEL_TRY(keel_derive_two(d, &keel_op_subtract, x, mean, &x));
    }
    KEEL_TRY(keel_derive_one(d, &keel_op_square, NULL, x, &r));
    KEEL_TRY(keel_derive_reduce(d, KEEL_REDUCE_MEAN, first, end, r, &r));
    KEEL_TRY(keel_derive_with(d, &keel_op_plus, r, a->epsilon, &r));
    KEEL_TRY(keel_derive_one(d, &keel_op_rsqrt, NULL, r, &r));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, x, r, &xhat));
    if (a->scale) KEEL_TRY(keel_derive_weighted(d, &keel_op_scale, NULL, g, 0, &g));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, g, xhat, &x));
    KEEL_TRY(keel_derive_reduce(d, KEEL_REDUCE_MEAN, first, end, x, &x));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, xhat, x, &x));
    if (!a->rms) {
        KEEL_TRY(keel_derive_reduce(d, KEEL_REDUCE_MEAN, first, end, g, &mean));
        KEEL_TRY(keel_derive_two(d, &keel_op_subtract, g, mean, &g));
    }
    KEEL_TRY(keel_derive_two(d, &keel_op_subtract, g, x, &g));
    return keel_derive_two(d, &keel_op_multiply, g, r, out);
}

const keel_op keel_op_layer_norm = {
    .name = "layer_norm",
    .args_size = sizeof(keel_layer_norm_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN | KEEL_READS_SAVED,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN | KEEL_READS_SAVED,
    .cases = (const keel_case[]){ { "5", "5|5", NULL },
                                  { "3,7", "7", "no_center" },
                                  { "3,7", "7", "no_scale epsilon 0.25" },
                                  { "2,3,4", "3,4|3,4", "dims 2" },
                                  { "4,6", "6", "rms no_center" },
                                  { "4,6", NULL, "no_center no_scale" },
                                  { NULL, NULL, NULL } },
    .args_for_case = keel_layer_norm_for_case,
};
#else
#include "ops/layer_norm_real.h"

static void REAL_(forward)(const keel_call *c)
{
    REAL_(normalize)(c, c->in[0], c->out[0]);
}

static void REAL_(backward)(const keel_call *c)
{
    REAL_(normalize_back)(c, c->in[0], c->out_grad[0], NULL);
}

static void REAL_(weights)(const keel_call *c)
{
    REAL_(normalize_weights)(c, c->in[0], c->out_grad[0]);
}
#endif
