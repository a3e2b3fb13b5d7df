/* y = min(max(x, 0), 6). Keras: relu6. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return x <= 0 ? 0 : x > 6 ? 6 : x;
}

static double slope(NO_ARGS, double y)
{
    return y > 0 && y < 6;
}

POINTWISE_FROM_OUT(value, slope)

const keel_op keel_op_relu6 = {
    .name = "relu6",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
