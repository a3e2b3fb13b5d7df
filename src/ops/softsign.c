/* y = x / (1 + |x|). Backward reads x: far from 0, 1 - |y| has lost its digits. Keras: softsign. */
#include "ops/derive.h"
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

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int slope;
    KEEL_TRY(keel_derive_one(d, &keel_op_absolute, NULL, d->in[0], &slope));
    KEEL_TRY(keel_derive_with(d, &keel_op_plus, slope, 1, &slope));
    KEEL_TRY(keel_derive_one(d, &keel_op_square, NULL, slope, &slope));
    return keel_derive_two(d, &keel_op_divide, d->grad, slope, out);
}

const keel_op keel_op_softsign = {
    .name = "softsign",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
