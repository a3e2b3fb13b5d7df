/* y = sin(x). Keras: ops.sin. */
#include "ops/pointwise.h"
#include "ops/derive.h"

static double value(NO_ARGS, double x)
{
    return sin(x);
}

static double slope(NO_ARGS, double x)
{
    return cos(x);
}

POINTWISE_FROM_IN(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int slope;
    KEEL_TRY(keel_derive_one(d, &keel_op_cos, NULL, d->in[0], &slope));
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_sin = {
    .name = "sin",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .inplace = true,
    .costly = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
