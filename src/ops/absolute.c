/* y = |x|; the slope at 0 is 0. Keras: ops.abs. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return fabs(x);
}

static double slope(NO_ARGS, double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_absolute = {
    .name = "absolute",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
