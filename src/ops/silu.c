/* y = x sigmoid(x), also called swish. Keras: silu. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return x / (1 + exp(-x));
}

static double slope(NO_ARGS, double x)
{
    const double s = 1 / (1 + exp(-x));
    return s * (1 + x * (1 - s));
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_silu = {
    .name = "silu",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
