/* y = 0 for x <= -1, (x + 1)^2 / 4 for x < 1, else x; dy/dx = sqrt(y) below 1. Keras: sparse_plus.
 */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return x <= -1 ? 0 : x < 1 ? (x + 1) * (x + 1) / 4 : x;
}

static double slope(NO_ARGS, double y)
{
    return y < 1 ? sqrt(y) : 1;
}

POINTWISE_FROM_OUT(value, slope)

const keel_op keel_op_sparse_plus = {
    .name = "sparse_plus",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .goes = keel_goes_like,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
