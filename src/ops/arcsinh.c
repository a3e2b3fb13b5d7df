/* y = arcsinh(x). Keras: ops.arcsinh. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return asinh(x);
}

static double slope(NO_ARGS, double x)
{
    return 1 / sqrt(1 + x * x);
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_arcsinh = {
    .name = "arcsinh",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
