/* y = a - b. */
#include "ops/binary.h"
#include "ops/derive.h"

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

static keel_status derive(const keel_derivation *d, int k, int *out)
{
    const bool second = d->node->n_in == 1 ? ((const keel_binary_args *)d->node->args)->left : k;
    *out = d->grad;
    return second ? keel_derive_with(d, &keel_op_multiply, d->grad, -1, out) : KEEL_OK;
}

const keel_op keel_op_subtract = BINARY_OP("subtract", BINARY_CASES, .derive = derive);
