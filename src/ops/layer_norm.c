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
#include "ops/layer_norm.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_layer_norm_check(n, 1));
    return keel_infer_out(n, &n->in[0].shape);
}

#define REAL_FILE "ops/layer_norm.c"
#include "ops/real.h"

const keel_op keel_op_layer_norm = {
    .name = "layer_norm",
    .args_size = sizeof(keel_layer_norm_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
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
