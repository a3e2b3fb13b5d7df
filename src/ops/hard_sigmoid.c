/* y = min(max(x + 3, 0), 6) / 6. Keras: hard_sigmoid. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6;
}

static double slope(NO_ARGS, double y)
{
    return y > 0 && y < 1 ? 1.0 / 6 : 0;
}

POINTWISE_FROM_OUT(value, slope)

const keel_op keel_op_hard_sigmoid = {
    .name = "hard_sigmoid",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
