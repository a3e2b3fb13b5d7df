/* y = |x|; the slope at 0 is 0. Keras: ops.abs. */
#include "ops/derive.h"
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return fabs(x);
}

static double slope(NO_ARGS, double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

POINTWISE_FROM_IN(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int above, below;
    KEEL_TRY(keel_derive_compare(d, d->in[0], KEEL_GREATER, 0, &above));
    KEEL_TRY(keel_derive_compare(d, d->in[0], KEEL_LESS, 0, &below));
    KEEL_TRY(keel_derive_two(d, &keel_op_subtract, above, below, &above));
    return keel_derive_times(d, above, out);
}

const keel_op keel_op_absolute = {
    .name = "absolute",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
