/* y = sqrt(x); dy/dx = 1 / (2 y). Keras: ops.sqrt. */
#include "ops/pointwise.h"
#include "ops/derive.h"

static double value(NO_ARGS, double x)
{
    return sqrt(x);
}

static double slope(NO_ARGS, double y)
{
    return 0.5 / y;
}

POINTWISE_FROM_OUT(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int half;
    KEEL_TRY(keel_derive_with(d, &keel_op_multiply, d->grad, 0.5, &half));
    return keel_derive_two(d, &keel_op_divide, half, d->out[0], out);
}

const keel_op keel_op_sqrt = {
    .name = "sqrt",
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
