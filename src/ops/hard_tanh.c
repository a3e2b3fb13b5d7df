/* y = min(max(x, -1), 1). Keras: hard_tanh. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return x < -1 ? -1 : x > 1 ? 1 : x;
}

/* At -1 and 1 themselves 1, as in Keras: narrow values often are these numbers. */
static double slope(NO_ARGS, double x)
{
    return x >= -1 && x <= 1;
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_hard_tanh = {
    .name = "hard_tanh",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
