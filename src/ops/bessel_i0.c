/* The modified Bessel function of order 0, whose slope is that of order 1. Keras: ops.i0.
 *
 * Both by their power series, I0 = sum (x^2 / 4)^k / k!^2, whose terms are all positive, so that no
 * digits are lost; from 20 on by the series in 1 / x (Abramowitz, Stegun 9.7.1), whose terms fall
 * below rounding first. */
#include "ops/pointwise.h"

static double bessel(int order, double x)
{
    const double size = fabs(x), mu = 4.0 * order * order;
    double term = 1, sum = 1;
    if (size < 20) {
        const double q = x * x / 4;
        term = order ? size / 2 : 1;
        sum = term;
        for (int k = 1; term > 1e-17 * sum; k++) {
            term *= q / ((double)k * (k + order));
            sum += term;
        }
    } else {
        for (int k = 1; k < 30 && fabs(term) > 1e-17 * sum; k++) {
            term *= -(mu - (2.0 * k - 1) * (2.0 * k - 1)) / (k * 8.0 * size);
            sum += term;
        }
        sum *= exp(size) / sqrt(2 * M_PI * size);
    }
    return order && x < 0 ? -sum : sum;
}

static double value(NO_ARGS, double x)
{
    return bessel(0, x);
}

static double slope(NO_ARGS, double x)
{
    return bessel(1, x);
}

POINTWISE_FROM_IN(value, slope)

const keel_op keel_op_bessel_i0 = {
    .name = "bessel_i0",
    .costly = true,
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .inplace = true,
    .cases =
        (const keel_case[]){ { "2,3", NULL, NULL }, { "1000", NULL, NULL }, { NULL, NULL, NULL } },
};
