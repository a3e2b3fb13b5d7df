/* y = 1 / sqrt(x); dy/dx = -y^3 / 2. Keras: ops.rsqrt. */
#include "ops/derive.h"
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return 1 / sqrt(x);
}

static double slope(NO_ARGS, double y)
{
    return -0.5 * y * y * y;
}

POINTWISE_FROM_OUT(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int slope;
    KEEL_TRY(keel_derive_one(d, &keel_op_square, NULL, d->out[0], &slope));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, slope, d->out[0], &slope));
    KEEL_TRY(keel_derive_with(d, &keel_op_multiply, slope, -0.5, &slope));
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_rsqrt = {
    .name = "rsqrt",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_OUT,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, "positive" },
                                  { "1000", NULL, "positive" },
                                  { NULL, NULL, NULL } },
};
