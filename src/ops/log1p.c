/* y = log(1 + x), exact near 0, too. Keras: ops.log1p. */
#include "ops/derive.h"
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return log1p(x);
}

static double slope(NO_ARGS, double x)
{
    return 1 / (1 + x);
}

POINTWISE_FROM_IN(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int below;
    KEEL_TRY(keel_derive_with(d, &keel_op_plus, d->in[0], 1, &below));
    return keel_derive_two(d, &keel_op_divide, d->grad, below, out);
}

const keel_op keel_op_log1p = {
    .name = "log1p",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, "positive" },
                                  { "1000", NULL, "positive" },
                                  { NULL, NULL, NULL } },
};
