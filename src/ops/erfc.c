/* y = 1 - erf(x), exact where it is small. Keras: ops.erfc. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return erfc(x);
}

static double slope(NO_ARGS, double x)
{
    return -2 / sqrt(3.14159265358979323846) * exp(-x * x);
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_erfc = {
    .name = "erfc",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, "positive" },
                                  { "1000", NULL, "positive" },
                                  { NULL, NULL, NULL } },
};
