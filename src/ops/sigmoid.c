/* y = 1 / (1 + exp(-x)); dy/dx = y (1 - y). Keras: sigmoid. */
#include "ops/pointwise.h"
#include "ops/derive.h"

static double value(NO_ARGS, double x)
{
    return 1 / (1 + exp(-x));
}

static double slope(NO_ARGS, double y)
{
    return y * (1 - y);
}

POINTWISE_FROM_OUT(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_binary_args one = { .left = true, .constant = 1 };
    int rest;
    KEEL_TRY(keel_derive_one(d, &keel_op_subtract, &one, d->out[0], &rest));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, d->out[0], rest, &rest));
    return keel_derive_times(d, rest, out);
}

const keel_op keel_op_sigmoid = {
    .name = "sigmoid",
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
