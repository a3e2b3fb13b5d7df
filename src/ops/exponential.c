/* y = exp(x) = dy/dx. Keras: exponential. */
#include "ops/pointwise.h"
#include "ops/derive.h"

static double value(NO_ARGS, double x)
{
    return exp(x);
}

static double slope(NO_ARGS, double y)
{
    return y;
}

POINTWISE_FROM_OUT(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    return keel_derive_times(d, d->out[0], out);
}

const keel_op keel_op_exponential = {
    .name = "exponential",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_OUT,
    .goes = keel_goes_like,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
