/* y = the angle of the point (b, a). Keras: ops.arctan2(a, b). */
#include "ops/binary.h"

static double value(double a, double b)
{
    return atan2(a, b);
}

static double slope_a(double a, double b)
{
    return b / (a * a + b * b);
}

static double slope_b(double a, double b)
{
    return -a / (a * a + b * b);
}

BINARY(value, slope_a, slope_b)

const keel_op keel_op_arctan2 = { BINARY_MEMBERS("arctan2", BINARY_CASES), .costly = true };
