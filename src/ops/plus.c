/* y = a + b. */
#include "ops/binary.h"
#include "ops/derive.h"

static double value(double a, double b)
{
    return a + b;
}

static double slope_a(double a __attribute__((unused)), double b __attribute__((unused)))
{
    return 1;
}

static double slope_b(double a __attribute__((unused)), double b __attribute__((unused)))
{
    return 1;
}

BINARY(value, slope_a, slope_b)

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    *out = d->grad;
    return KEEL_OK;
}

const keel_op keel_op_plus = BINARY_OP("plus", BINARY_CASES, .derive = derive);
