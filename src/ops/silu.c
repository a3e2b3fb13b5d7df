/* y = x sigmoid(x), also called swish. Keras: silu. */
#include "ops/pointwise.h"
#include "ops/derive.h"

static double value(NO_ARGS, double x)
{
    return x / (1 + exp(-x));
}

static double slope(NO_ARGS, double x)
{
    const double s = 1 / (1 + exp(-x));
    return s * (1 + x * (1 - s));
}

POINTWISE_FROM_IN(value, slope)

/* The slope is s + y (1 - s), with s = sigmoid(x). */
static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_binary_args one = { .left = true, .constant = 1 };
    int s, slope;
    KEEL_TRY(keel_derive_one(d, &keel_op_sigmoid, NULL, d->in[0], &s));
    KEEL_TRY(keel_derive_one(d, &keel_op_subtract, &one, s, &slope));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, d->out[0], slope, &slope));
    KEEL_TRY(keel_derive_two(d, &keel_op_add, s, slope, &slope));
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_silu = {
    .name = "silu",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
