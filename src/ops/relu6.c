/* y = min(max(x, 0), 6). Keras: relu6. */
#include "ops/derive.h"
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    return x <= 0 ? 0 : x > 6 ? 6 : x;
}

static double slope(NO_ARGS, double y)
{
    return y > 0 && y < 6;
}

POINTWISE_FROM_OUT(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int inside, below;
    KEEL_TRY(keel_derive_compare(d, d->out[0], KEEL_GREATER, 0, &inside));
    KEEL_TRY(keel_derive_compare(d, d->out[0], KEEL_LESS, 6, &below));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, inside, below, &inside));
    return keel_derive_times(d, inside, out);
}

const keel_op keel_op_relu6 = {
    .name = "relu6",
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
