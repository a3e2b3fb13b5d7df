/* y = the smaller of a and b; where they are equal the gradient is that of a, as in TensorFlow.
 * NaN stays NaN. */
#include "ops/binary.h"

static double value(double a, double b)
{
    return a <= b || isnan(a) ? a : b;
}

static double slope_a(double a, double b)
{
    return a <= b ? 1 : 0;
}

static double slope_b(double a, double b)
{
    return a <= b ? 0 : 1;
}

BINARY(value, slope_a, slope_b)

const keel_op keel_op_minimum = BINARY_OP("minimum", BINARY_CASES);
