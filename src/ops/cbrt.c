/* y = the cube root of x. Keras: ops.cbrt. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return cbrt(x);
}

static double slope(NO_ARGS, double x)
{
    return 1 / (3 * cbrt(x) * cbrt(x));
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_cbrt = {
    .name = "cbrt",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, "positive" },
                                  { "1000", NULL, "positive" },
                                  { NULL, NULL, NULL } },
};
