/* y = erf(x). Keras: ops.erf. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return erf(x);
}

static double slope(NO_ARGS, double x)
{
    return 1.1283791670955126 * exp(-x * x);
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_erf = {
    .name = "erf",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
