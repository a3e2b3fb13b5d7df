/* y = x tanh(softplus(x)); Misra 2019, arXiv 1908.08681. Keras: mish. */
#include "ops/pointwise.h"

static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double value(NO_ARGS, double x)
{
    return x * tanh(softplus(x));
}

static double slope(NO_ARGS, double x)
{
    const double t = tanh(softplus(x)), s = 1 / (1 + exp(-x));
    return t + x * s * (1 - t * t);
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_mish = {
    .name = "mish",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
