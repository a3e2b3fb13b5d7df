/* y = x hard_sigmoid(x), also called hard swish; of -infinity no number, as in Keras: hard_silu. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return x <= -3 ? x * 0.0 : x >= 3 ? x : x * (x + 3) / 6;
}

static double slope(NO_ARGS, double x)
{
    return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6;
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_hard_silu = {
    .name = "hard_silu",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
