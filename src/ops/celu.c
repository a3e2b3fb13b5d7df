/* y = x for x > 0, else alpha (exp(x / alpha) - 1); dy/dx = y / alpha + 1 there. Keras: celu. */
#include "ops/pointwise.h"

static double value(const keel_alpha_args *a, double x)
{
    return x > 0 ? x : a->alpha * expm1(x / a->alpha);
}

static double slope(const keel_alpha_args *a, double y)
{
    return y > 0 ? 1 : y / a->alpha + 1;
}

POINTWISE_FROM_OUT(value, slope)

static keel_status infer(keel_node *n)
{
    if (((const keel_alpha_args *)n->args)->alpha == 0)
        return keel_fail(KEEL_EARG, "celu: alpha must not be 0");
    return keel_infer_like(n);
}

static void args_for_case(void *args, const char *text)
{
    keel_alpha_args *a = args;
    a->alpha = 1;
    keel_case_number(text, "alpha", &a->alpha);
}

const keel_op keel_op_celu = {
    .name = "celu",
    .costly = true,
    .args_size = sizeof(keel_alpha_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, NULL },
                                  { "1000", NULL, NULL },
                                  { "50", NULL, "alpha 0.5" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
