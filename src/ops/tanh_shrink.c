/* y = x - tanh(x); dy/dx = tanh(x)^2. Keras: tanh_shrink.
 *
 * Near 0 both terms are alike. There tanh(x) = x / (1 + r), r = x^2 / (3 + x^2 / (5 + ...)), and so
 * y = x r / (1 + r), where nothing cancels. */
#include "ops/pointwise.h"

static double value(NO_ARGS, double x)
{
    enum { LAST = 15 };
    double next = LAST + 2;
    if (!(fabs(x) < 0.5)) return x - tanh(x);
    for (int k = LAST; k >= 3; k -= 2) next = k + x * x / next;
    const double r = x * x / next;
    return x * r / (1 + r);
}

static double slope(NO_ARGS, double x)
{
    return tanh(x) * tanh(x);
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_tanh_shrink = {
    .name = "tanh_shrink",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
