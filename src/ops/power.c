/* y = a to the power of b. As in TensorFlow, the slope by b is 0 where a is not above 0. */
#include "ops/binary.h"

static double value(double a, double b)
{
    return pow(a, b);
}

static double slope_a(double a, double b)
{
    return b == 0 ? 0 : b * pow(a, b - 1);
}

static double slope_b(double a, double b)
{
    return a > 0 ? pow(a, b) * log(a) : 0;
}

BINARY(value, slope_a, slope_b)

static const keel_case cases[] = { { "6", NULL, "right 2" },
                                   { "2,3", NULL, "left 1.5" },
                                   { "2,3", NULL, "right 3" },
                                   { "5,7|5,7", NULL, "positive" },
                                   { 0 } };

const keel_op keel_op_power = { BINARY_MEMBERS("power", cases), .costly = true };
