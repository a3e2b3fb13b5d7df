/* y = x P(X <= x), X normal: x (1 + erf(x / sqrt 2)) / 2, or its tanh approximation; Hendrycks and
 * Gimpel 2016, arXiv 1606.08415. Keras: gelu. */
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

const keel_op keel_op_gelu = {
    .name = "gelu",
    .costly = true,
    .args_size = sizeof(keel_gelu_args),
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "2,3", NULL, NULL },
                                  { "1000", NULL, NULL },
                                  { "50", NULL, "approximate" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
