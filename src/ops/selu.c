/* y = scale x for x > 0, else scale alpha (exp(x) - 1); Klambauer et al. 2017, arXiv 1706.02515.
 * At 0, where rows of zeros begin, the slope is scale, as TensorFlow's. Keras: selu. */
#include "ops/derive.h"
#include "ops/pointwise.h"

#define SCALE 1.05070098735548049342
#define ALPHA 1.67326324235437728482

static double value(NO_ARGS, double x)
{
    return x > 0 ? SCALE * x : SCALE * ALPHA * expm1(x);
}

static double slope(NO_ARGS, double y)
{
    return y >= 0 ? SCALE : y + SCALE * ALPHA;
}

POINTWISE_FROM_OUT(value, slope)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int above, below, slope;
    KEEL_TRY(keel_derive_compare(d, d->in[0], KEEL_GREATER_EQUAL, 0, &above));
    KEEL_TRY(keel_derive_compare(d, d->in[0], KEEL_LESS, 0, &below));
    KEEL_TRY(keel_derive_with(d, &keel_op_multiply, above, SCALE, &above));
    KEEL_TRY(keel_derive_with(d, &keel_op_plus, d->out[0], SCALE * ALPHA, &slope));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, slope, below, &slope));
    KEEL_TRY(keel_derive_two(d, &keel_op_add, slope, above, &slope));
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_selu = {
    .name = "selu",
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
