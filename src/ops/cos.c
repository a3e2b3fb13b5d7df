/* y = cos(x). Keras: ops.cos. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return cos(x);
}

static double slope(NO_ARGS, double x)
{
    return -sin(x);
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_cos = {
    .name = "cos",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .inplace = true,
    .costly = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
