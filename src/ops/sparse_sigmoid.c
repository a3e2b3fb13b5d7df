/* y = 0 for x <= -1, 1 for x >= 1, else (x + 1) / 2. Keras: sparse_sigmoid. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return x <= -1 ? 0 : x >= 1 ? 1 : (x + 1) / 2;
}

static double slope(NO_ARGS, double y)
{
    return y > 0 && y < 1 ? 0.5 : 0;
}

POINTWISE_FROM_OUT(value, slope)

const keel_op keel_op_sparse_sigmoid = {
    .name = "sparse_sigmoid",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .goes = keel_goes_like,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
