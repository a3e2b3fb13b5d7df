/* 1 where the comparison of a and b holds, else 0; NaN differs from everything, also from itself.
 * No gradient flows. Keras: ops.equal, ops.less, ... */
#include "ops/binary.h"

static double compare(const void *args, double a, double b)
{
    return KEEL_HOLDS(((const keel_compare_args *)args)->is, a, b);
}

BINARY_FORWARD(compare)

static void args_for_case(void *args, const char *text)
{
    keel_compare_args *a = args;
    int64_t is = KEEL_EQUAL;
    keel_binary_for_case(&a->operands, text);
    keel_case_ints(text, "is", &is, 1);
    a->is = (keel_comparison)is;
}

const keel_op keel_op_compare = {
    .name = "compare",
    .args_size = sizeof(keel_compare_args),
    .infer = keel_binary_infer,
    .forward = REALS(forward),
    .goes = keel_goes_spread,
    .cases = (const keel_case[]){ { "4,5|4,5", NULL, "is 2" },
                                  { "6", NULL, "right 1.5 is 4" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
