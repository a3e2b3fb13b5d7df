/* y = a to the power of b. As in TensorFlow, the slope by b is 0 where a is not above 0. */
#include "ops/binary.h"
#include "ops/derive.h"

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

/* Of a value to a number, or a number to a value. */
static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_binary_args *a = d->node->args;
    const double b = a->constant;
    int slope;
    if (d->node->n_in == 2 || (a->left && b <= 0))
        return keel_fail(KEEL_EUNSUP,
                         "power: only its gradient with a number can be differentiated");
    if (a->left) {
        KEEL_TRY(keel_derive_with(d, &keel_op_multiply, d->out[0], log(b), &slope));
    } else {
        KEEL_TRY(keel_derive_with(d, &keel_op_power, d->in[0], b == 0 ? 0 : b - 1, &slope));
        KEEL_TRY(keel_derive_with(d, &keel_op_multiply, slope, b, &slope));
    }
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_power = { BINARY_MEMBERS("power", cases), .derive = derive, .costly = true };
