/* y = x P(X <= x), X normal: x (1 + erf(x / sqrt 2)) / 2, or its tanh approximation; Hendrycks and
 * Gimpel 2016, arXiv 1606.08415. Keras: gelu. */
#include "ops/derive.h"
#include "ops/pointwise.h"

#define ROOT  0.79788456080286535588 /* sqrt(2 / pi) */
#define CUBIC 0.044715

/* (1 + tanh(u)) / 2 of the approximation, without the difference that leaves no digits far below 0;
 * the other half is that of -x. */
static double half_of_tanh(double x)
{
    return 1 / (1 + exp(-2 * ROOT * (x + CUBIC * x * x * x)));
}

static double value(const keel_gelu_args *a, double x)
{
    if (a->approximate) return x * half_of_tanh(x);
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double slope(const keel_gelu_args *a, double x)
{
    if (a->approximate)
        return half_of_tanh(x) * (1 + x * half_of_tanh(-x) * (2 * ROOT * (1 + 3 * CUBIC * x * x)));
    return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
}

POINTWISE_FROM_IN(value, slope)

static void args_for_case(void *args, const char *text)
{
    keel_gelu_args *a = args;
    a->approximate = keel_case_has(text, "approximate");
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const int x = d->in[0];
    int square, half, more;
    KEEL_TRY(keel_derive_one(d, &keel_op_square, NULL, x, &square));
    if (((const keel_gelu_args *)d->node->args)->approximate) { /* half + x half (1 - half) du/dx */
        int slope, rest;
        KEEL_TRY(keel_derive_with(d, &keel_op_multiply, square, 2 * ROOT * CUBIC, &half));
        KEEL_TRY(keel_derive_with(d, &keel_op_plus, half, 2 * ROOT, &half));
        KEEL_TRY(keel_derive_two(d, &keel_op_multiply, half, x, &half));
        KEEL_TRY(keel_derive_one(d, &keel_op_sigmoid, NULL, half, &half));
        KEEL_TRY(keel_derive_with(d, &keel_op_multiply, square, 6 * ROOT * CUBIC, &slope));
        KEEL_TRY(keel_derive_with(d, &keel_op_plus, slope, 2 * ROOT, &slope));
        KEEL_TRY(keel_derive_from(d, &keel_op_subtract, 1, half, &rest));
        KEEL_TRY(keel_derive_two(d, &keel_op_multiply, half, rest, &more));
        KEEL_TRY(keel_derive_two(d, &keel_op_multiply, more, slope, &more));
    } else {
        KEEL_TRY(keel_derive_with(d, &keel_op_multiply, x, -M_SQRT1_2, &half));
        KEEL_TRY(keel_derive_one(d, &keel_op_erfc, NULL, half, &half));
        KEEL_TRY(keel_derive_with(d, &keel_op_multiply, half, 0.5, &half));
        KEEL_TRY(keel_derive_with(d, &keel_op_multiply, square, -0.5, &more));
        KEEL_TRY(keel_derive_one(d, &keel_op_exponential, NULL, more, &more));
        KEEL_TRY(keel_derive_with(d, &keel_op_multiply, more, 0.5 * M_2_SQRTPI * M_SQRT1_2, &more));
    }
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, more, x, &more));
    KEEL_TRY(keel_derive_two(d, &keel_op_add, half, more, &half));
    return keel_derive_times(d, half, out);
}

const keel_op keel_op_gelu = {
    .name = "gelu",
    .costly = true,
    .args_size = sizeof(keel_gelu_args),
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .cases = (const keel_case[]){ { "2,3", NULL, NULL },
                                  { "1000", NULL, NULL },
                                  { "50", NULL, "approximate" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
