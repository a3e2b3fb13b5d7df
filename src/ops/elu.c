/* y = x for x > 0, else alpha (exp(x) - 1); dy/dx = y + alpha there. Keras: elu. */
#include "ops/pointwise.h"
#include "ops/derive.h"

static double value(const keel_alpha_args *a, double x)
{
    return x > 0 ? x : a->alpha * expm1(x);
}

static double slope(const keel_alpha_args *a, double y)
{
    return y > 0 ? 1 : y + a->alpha;
}

POINTWISE_FROM_OUT(value, slope)

static keel_status infer(keel_node *n)
{
    const double alpha = ((const keel_alpha_args *)n->args)->alpha;
    if (!(alpha >= 0)) /* y would no longer have the sign of x */
        return keel_fail(KEEL_EARG, "elu: alpha %g must not be negative", alpha);
    return keel_infer_like(n);
}

static void args_for_case(void *args, const char *text)
{
    keel_alpha_args *a = args;
    a->alpha = 1;
    keel_case_number(text, "alpha", &a->alpha);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const double alpha = ((const keel_alpha_args *)d->node->args)->alpha;
    int above, below, slope;
    KEEL_TRY(keel_derive_choice(d, 1, 0, &above));
    KEEL_TRY(keel_derive_choice(d, 0, 1, &below));
    KEEL_TRY(keel_derive_with(d, &keel_op_plus, d->out[0], alpha, &slope));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, slope, below, &slope));
    KEEL_TRY(keel_derive_two(d, &keel_op_add, slope, above, &slope));
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_elu = {
    .name = "elu",
    .costly = true,
    .args_size = sizeof(keel_alpha_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_OUT,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, NULL },
                                  { "1000", NULL, NULL },
                                  { "50", NULL, "alpha 0.5" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
