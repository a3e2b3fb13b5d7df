/* What two whole numbers make: of their bits, as numbers of 64 bits in two's complement, or of
 * their divisors. A fraction is cut off first. No gradient flows. Keras: ops.bitwise_and,
 * ops.left_shift, ops.gcd, ... */
#include "ops/whole_numbers.h"
#include "ops/binary.h"

/* Numbers beyond 64 bits become the nearest, NaN becomes 0. */
static int64_t whole(double x)
{
    if (!(x > -9223372036854775808.0)) return isnan(x) ? 0 : INT64_MIN;
    return x < 9223372036854775808.0 ? (int64_t)x : INT64_MAX;
}

static uint64_t size_of(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* By less than 0 or by 64 bits and more, TensorFlow shifts by the nearest that is allowed. */
static int64_t bits(int64_t by)
{
    return by < 0 ? 0 : by > 63 ? 63 : by;
}

static double combine(const void *args, double x, double y)
{
    const int64_t a = whole(x), b = whole(y);
    switch (((const keel_whole_args *)args)->how) {
    case KEEL_BITS_AND:
        return (double)(a & b);
    case KEEL_BITS_OR:
        return (double)(a | b);
    case KEEL_BITS_XOR:
        return (double)(a ^ b);
    case KEEL_SHIFT_LEFT:
        return (double)(int64_t)((uint64_t)a << bits(b));
    case KEEL_SHIFT_RIGHT:
        return (double)(a < 0 ? ~(~a >> bits(b)) : a >> bits(b));
    case KEEL_GREATEST_DIVISOR:
        return (double)divisor(size_of(a), size_of(b));
    default: {
        const uint64_t d = divisor(size_of(a), size_of(b));
        return d ? (double)(size_of(a) / d) * (double)size_of(b) : 0;
    }
    }
}

BINARY_FORWARD(combine)

static void args_for_case(void *args, const char *text)
{
    keel_whole_args *a = args;
    int64_t how = KEEL_BITS_AND;
    keel_binary_for_case(&a->operands, text);
    keel_case_ints(text, "how", &how, 1);
    a->how = (keel_whole)how;
}

const keel_op keel_op_whole_numbers = {
    .name = "whole_numbers",
    .args_size = sizeof(keel_whole_args),
    .infer = keel_binary_infer,
    .forward = REALS(forward),
    .goes = keel_goes_spread,
    .cases = (const keel_case[]){ { "4,5|4,5", NULL, "how 2" },
                                  { "4,1|1,5", NULL, "how 5" },
                                  { "6", NULL, "right 3 how 0" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
