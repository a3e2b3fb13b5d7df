/* y = a - b. */
#include "ops/binary.h"

static double value(double a, double b)
{
    return a - b;
}

static double slope_a(double a __attribute__((unused)), double b __attribute__((unused)))
{
    return 1;
}

static double slope_b(double a __attribute__((unused)), double b __attribute__((unused)))
{
    return -1;
}

BINARY(value, slope_a, slope_b)

const keel_op keel_op_subtract = BINARY_OP("subtract", BINARY_CASES);
