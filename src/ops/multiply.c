/* y = a b. */
#include "ops/binary.h"
#include "ops/derive.h"

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

static keel_status derive(const keel_derivation *d, int k, int *out)
{
    if (d->node->n_in == 2) return keel_derive_times(d, d->in[1 - k], out);
    const double constant = ((const keel_binary_args *)d->node->args)->constant;
    return keel_derive_with(d, &keel_op_multiply, d->grad, constant, out);
}

const keel_op keel_op_multiply = BINARY_OP("multiply", BINARY_CASES, .derive = derive);
