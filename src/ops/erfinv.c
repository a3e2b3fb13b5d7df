/* y, of which x is the error function. Keras: ops.erfinv. */
#include "ops/pointwise.h"

/* Begins with the root of a quadratic of log(1 - x^2) (Winitzki 2008), 0.2 percent off, and takes
 * four of Newton's steps, each of which doubles the digits. */
static double value(NO_ARGS, double x)
{
    const double half_root_pi = 0.88622692545275801365, k = 0.147;
    if (!(fabs(x) < 1)) return fabs(x) == 1 ? copysign(INFINITY, x) : NAN;
    const double size = fabs(x), l = log1p(-x * x), b = 2 / (M_PI * k) + l / 2;
    double y = sqrt(fmax(sqrt(b * b - l / k) - b, 0));
    for (int i = 0; i < 4; i++) {
        /* erfc has the digits that erf loses near 1 */
        const double over = y < 1 ? erf(y) - size : 1 - size - erfc(y);
        y -= over * half_root_pi * exp(y * y);
    }
    return copysign(y, x);
}

static double slope(NO_ARGS, double y)
{
    return 0.88622692545275801365 * exp(y * y);
}

POINTWISE_FROM_OUT(value, slope)

const keel_op keel_op_erfinv = {
    .name = "erfinv",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, "inside" },
                                  { "1000", NULL, "inside" },
                                  { NULL, NULL, NULL } },
};
