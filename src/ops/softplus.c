/* y = log(1 + exp(x)), written so that no exp overflows; dy/dx = 1 - exp(-y). Keras: softplus. */
#include "ops/pointwise.h"
#include "ops/derive.h"

static double value(NO_ARGS, double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double slope(NO_ARGS, double y)
{
    return -expm1(-y);
}

POINTWISE_FROM_OUT(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int slope;
    KEEL_TRY(keel_derive_one(d, &keel_op_sigmoid, NULL, d->in[0], &slope));
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_softplus = {
    .name = "softplus",
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
