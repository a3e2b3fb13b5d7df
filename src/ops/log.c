/* y = the natural logarithm of x. Keras: ops.log. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return log(x);
}

static double slope(NO_ARGS, double x)
{
    return 1 / x;
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_log = {
    .name = "log",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .inplace = true,
    .costly = true,
    .cases = (const keel_case[]){ { "2,3", NULL, "positive" },
                                  { "1000", NULL, "positive" },
                                  { NULL, NULL, NULL } },
};
