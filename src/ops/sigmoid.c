/* y = 1 / (1 + exp(-x)); dy/dx = y (1 - y). Keras: sigmoid. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return 1 / (1 + exp(-x));
}

static double slope(NO_ARGS, double y)
{
    return y * (1 - y);
}

POINTWISE_FROM_OUT(value, slope)

const keel_op keel_op_sigmoid = {
    .name = "sigmoid",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
