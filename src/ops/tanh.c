/* y = tanh(x); dy/dx = 1 - y^2. Keras: tanh. */
#include "ops/pointwise.h"
#include "ops/derive.h"

static double value(NO_ARGS, double x)
{
    return tanh(x);
}

static double slope(NO_ARGS, double y)
{
    return 1 - y * y;
}

POINTWISE_FROM_OUT(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_binary_args one = { .left = true, .constant = 1 };
    int slope;
    KEEL_TRY(keel_derive_one(d, &keel_op_square, NULL, d->out[0], &slope));
    KEEL_TRY(keel_derive_one(d, &keel_op_subtract, &one, slope, &slope));
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_tanh = {
    .name = "tanh",
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
