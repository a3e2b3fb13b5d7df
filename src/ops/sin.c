/* y = sin(x). Keras: ops.sin. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return sin(x);
}

static double slope(NO_ARGS, double x)
{
    return cos(x);
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_sin = {
    .name = "sin",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .inplace = true,
    .costly = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
