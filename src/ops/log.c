/* y = the natural logarithm of x. Keras: ops.log. */
#include "ops/pointwise.h"
#include "ops/derive.h"

static double value(NO_ARGS, double x)
{
    return log(x);
}

static double slope(NO_ARGS, double x)
{
    return 1 / x;
}

POINTWISE_FROM_IN(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    return keel_derive_two(d, &keel_op_divide, d->grad, d->in[0], out);
}

const keel_op keel_op_log = {
    .name = "log",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .inplace = true,
    .costly = true,
    .cases = (const keel_case[]){ { "2,3", NULL, "positive" },
                                  { "1000", NULL, "positive" },
                                  { NULL, NULL, NULL } },
};
