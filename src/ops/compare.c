/* 1 where the comparison of a and b holds, else 0; NaN differs from everything, also from itself.
 * No gradient flows. Keras: ops.equal, ops.less, ... */
#include "ops/binary.h"

static double compare(const void *args, double a, double b)
{
    switch (((const keel_compare_args *)args)->is) {
    case KEEL_EQUAL:
        return a == b;
    case KEEL_NOT_EQUAL:
        return a != b;
    case KEEL_LESS:
        return a < b;
    case KEEL_LESS_EQUAL:
        return a <= b;
    case KEEL_GREATER:
        return a > b;
    default:
        return a >= b;
    }
}

#define COMPARE_RUN(type, suffix)                                                                  \
    BINARY_OPERAND(type, suffix)                                                                   \
    static void forward_##suffix(const keel_call *c)                                               \
    {                                                                                              \
        const int64_t count = keel_row_count(&c->node->out[0]);                                    \
        const keel_binary_runs r = keel_binary_runs_of(c->node);                                   \
        type *y = c->out[0];                                                                       \
        for (int64_t row = 0; row < c->rows; row++)                                                \
            for (int64_t i = 0; i < count; i += r.length, y += r.length) {                         \
                const operand_##suffix a = find_##suffix(c, &r, 0, row, i);                        \
                const operand_##suffix b = find_##suffix(c, &r, 1, row, i);                        \
                for (int64_t k = 0; k < r.length; k++)                                             \
                    y[k] = (type)compare(c->node->args, a.at ? a.at[k] : a.one,                    \
                                         b.at ? b.at[k] : b.one);                                  \
            }                                                                                      \
    }
COMPARE_RUN(float, f32)
COMPARE_RUN(double, f64)

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
    .cases = (const keel_case[]){ { "4,5|4,5", NULL, "is 2" },
                                  { "6", NULL, "right 1.5 is 4" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
