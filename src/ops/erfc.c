/* y = 1 - erf(x), exact where it is small. Keras: ops.erfc. */
#include "ops/derive.h"
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return erfc(x);
}

static double slope(NO_ARGS, double x)
{
    return -2 / sqrt(3.14159265358979323846) * exp(-x * x);
}

POINTWISE_FROM_IN(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int slope;
    KEEL_TRY(keel_derive_one(d, &keel_op_square, NULL, d->in[0], &slope));
    KEEL_TRY(keel_derive_with(d, &keel_op_multiply, slope, -1, &slope));
    KEEL_TRY(keel_derive_one(d, &keel_op_exponential, NULL, slope, &slope));
    KEEL_TRY(keel_derive_with(d, &keel_op_multiply, slope, -M_2_SQRTPI, &slope));
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_erfc = {
    .name = "erfc",
    .costly = true,
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
