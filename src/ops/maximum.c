/* y = the larger of a and b; where they are equal the gradient is that of a, as in TensorFlow. NaN
 * stays NaN. */
#include "ops/binary.h"
#include "ops/derive.h"

static double value(double a, double b)
{
    return a >= b || isnan(a) ? a : b;
}

static double slope_a(double a, double b)
{
    return a >= b ? 1 : 0;
}

static double slope_b(double a, double b)
{
    return a >= b ? 0 : 1;
}

BINARY(value, slope_a, slope_b)

/* Where that operand is the one that is taken. */
static keel_status derive(const keel_derivation *d, int k, int *out)
{
    const keel_binary_args *a = d->node->args;
    const bool one = d->node->n_in == 1, second = one ? a->left : k == 1;
    const keel_compare_args is = { *a, second ? KEEL_LESS : KEEL_GREATER_EQUAL };
    int taken;
    KEEL_TRY(d->emit(d, &keel_op_compare, &is, d->in, d->node->n_in, 0, NULL, &taken));
    return keel_derive_times(d, taken, out);
}

const keel_op keel_op_maximum = BINARY_OP("maximum", BINARY_CASES, .derive = derive);
