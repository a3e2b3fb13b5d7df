/* y = log(1 + exp(x)), written so that no exp overflows; dy/dx = 1 - exp(-y). Keras: softplus. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double slope(NO_ARGS, double y)
{
    return -expm1(-y);
}

POINTWISE_FROM_OUT(value, slope)

const keel_op keel_op_softplus = {
    .name = "softplus",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
