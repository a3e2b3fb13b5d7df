/* y = x for x > 0, else negative_slope x. Keras: leaky_relu, LeakyReLU. */
#include "ops/pointwise.h"
#include "ops/derive.h"

static double value(const keel_leaky_relu_args *a, double x)
{
    return x > 0 ? x : a->negative_slope * x;
}

static double slope(const keel_leaky_relu_args *a, double y)
{
    return y > 0 ? 1 : a->negative_slope;
}

POINTWISE_FROM_OUT(value, slope)

static keel_status infer(keel_node *n)
{
    const double negative_slope = ((const keel_leaky_relu_args *)n->args)->negative_slope;
    if (!(negative_slope >= 0)) /* y would no longer have the sign of x */
        return keel_fail(KEEL_EARG, "leaky_relu: negative_slope %g must not be negative",
                         negative_slope);
    return keel_infer_like(n);
}

static void args_for_case(void *args, const char *text)
{
    keel_leaky_relu_args *a = args;
    a->negative_slope = 0.2;
    keel_case_number(text, "negative_slope", &a->negative_slope);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_leaky_relu_args *a = d->node->args;
    int slope;
    KEEL_TRY(keel_derive_choice(d, 1, a->negative_slope, &slope));
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_leaky_relu = {
    .name = "leaky_relu",
    .args_size = sizeof(keel_leaky_relu_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_OUT,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, NULL },
                                  { "1000", NULL, NULL },
                                  { "50", NULL, "negative_slope 0.5" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
