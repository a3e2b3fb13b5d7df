/* y = x / (1 + |x|). Backward reads x: far from 0, 1 - |y| has lost its digits. Keras: softsign. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return x / (1 + fabs(x));
}

static double slope(NO_ARGS, double x)
{
    return 1 / ((1 + fabs(x)) * (1 + fabs(x)));
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_softsign = {
    .name = "softsign",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
