/* y = a b. */
#include "ops/binary.h"

static double value(double a, double b)
{
    return a * b;
}

static double slope_a(double a __attribute__((unused)), double b)
{
    return b;
}

static double slope_b(double a, double b __attribute__((unused)))
{
    return a;
}

BINARY(value, slope_a, slope_b)

const keel_op keel_op_multiply = BINARY_OP("multiply", BINARY_CASES);
