/* y = exp(x) - 1, exact near 0, too. Keras: ops.expm1. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return expm1(x);
}

static double slope(NO_ARGS, double x)
{
    return exp(x);
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_expm1 = {
    .name = "expm1",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
