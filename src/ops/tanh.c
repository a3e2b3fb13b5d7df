/* y = tanh(x); dy/dx = 1 - y^2. Keras: tanh. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return tanh(x);
}

static double slope(NO_ARGS, double y)
{
    return 1 - y * y;
}

POINTWISE_FROM_OUT(value, slope)

const keel_op keel_op_tanh = {
    .name = "tanh",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
