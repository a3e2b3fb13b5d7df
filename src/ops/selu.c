/* y = scale x for x > 0, else scale alpha (exp(x) - 1); Klambauer et al. 2017, arXiv 1706.02515.
 * At 0, where rows of zeros begin, the slope is scale, as TensorFlow's. Keras: selu. */
#include "ops/pointwise.h"

#define SCALE 1.05070098735548049342
#define ALPHA 1.67326324235437728482

static double value(NO_ARGS, double x)
{
    return x > 0 ? SCALE * x : SCALE * ALPHA * expm1(x);
}

static double slope(NO_ARGS, double y)
{
    return y >= 0 ? SCALE : y + SCALE * ALPHA;
}

POINTWISE_FROM_OUT(value, slope)

const keel_op keel_op_selu = {
    .name = "selu",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
