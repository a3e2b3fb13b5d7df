/* y = the remainder of a / b, with the sign of b. Keras: ops.mod. */
#include "ops/binary.h"

static double value(double a, double b)
{
    const double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double slope_a(double a, double b)
{
    return (void)a, (void)b, 1;
}

static double slope_b(double a, double b)
{
    return -floor(a / b);
}

BINARY(value, slope_a, slope_b)

const keel_op keel_op_mod = BINARY_OP("mod", BINARY_CASES);
