/* y = x - tanh(x); dy/dx = tanh(x)^2. Keras: tanh_shrink. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return x - tanh(x);
}

static double slope(NO_ARGS, double x)
{
    return tanh(x) * tanh(x);
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_tanh_shrink = {
    .name = "tanh_shrink",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
