/* y = a / b. */
#include "ops/binary.h"
#include "ops/derive.h"

static double value(double a, double b)
{
    return a / b;
}

static double slope_a(double a __attribute__((unused)), double b)
{
    return 1 / b;
}

static double slope_b(double a, double b)
{
    return -a / (b * b);
}

BINARY(value, slope_a, slope_b)

static keel_status derive(const keel_derivation *d, int k, int *out)
{
    const keel_binary_args *a = d->node->args;
    int by;
    if (d->node->n_in == 1 && !a->left)
        return keel_derive_with(d, &keel_op_divide, d->grad, a->constant, out);
    const bool first = d->node->n_in == 2 && k == 0;
    KEEL_TRY(keel_derive_two(d, &keel_op_divide, d->grad, d->in[d->node->n_in - 1], &by));
    if (first) {
        *out = by;
        return KEEL_OK;
    }
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, by, d->out[0], &by)); /* -g (a / b) / b */
    return keel_derive_with(d, &keel_op_multiply, by, -1, out);
}

const keel_op keel_op_divide = BINARY_OP("divide", BINARY_CASES, .derive = derive);
