/* y = (x + sqrt(x^2 + b)) / 2; Barron 2021, arXiv 2112.11687. Below 0 the sum would cancel, and
 * y = b / (sqrt(x^2 + b) - x) / 2 is the same, but of -infinity, where the sum is no number, as in
 * Keras: squareplus. */
#include "ops/pointwise.h"

static double value(const keel_squareplus_args *a, double x)
{
    const double root = sqrt(x * x + a->b);
    return 0.5 * (x < 0 && x > -INFINITY ? a->b / (root - x) : x + root);
}

static double slope(const keel_squareplus_args *a, double x)
{
    const double root = sqrt(x * x + a->b);
    if (x < 0) return 0.5 * a->b / (root * (root - x));
    return root == 0 ? 0.5 : 0.5 * (1 + x / root);
}

POINTWISE_FROM_IN(value, slope)

static keel_status infer(keel_node *n)
{
    const double b = ((const keel_squareplus_args *)n->args)->b;
    if (!(b >= 0)) return keel_fail(KEEL_EARG, "squareplus: b %g must not be negative", b);
    return keel_infer_like(n);
}

static void args_for_case(void *args, const char *text)
{
    keel_squareplus_args *a = args;
    a->b = 4;
    keel_case_number(text, "b", &a->b);
}

const keel_op keel_op_squareplus = {
    .name = "squareplus",
    .args_size = sizeof(keel_squareplus_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .cases = (const keel_case[]){ { "2,3", NULL, NULL },
                                  { "1000", NULL, NULL },
                                  { "50", NULL, "b 1.5" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
