/* Rounding to integers in several ways, and the sign. No gradient flows. Keras: ops.floor,
 * ops.ceil, ops.round, ops.trunc, ops.sign, ops.signbit. */
#include "ops/rounded.h"
#include "ops/pointwise.h"

static double value(const void *args, double x)
{
    switch (((const keel_rounded_args *)args)->to) {
    case KEEL_FLOOR:
        return floor(x);
    case KEEL_CEIL:
        return ceil(x);
    case KEEL_NEAREST:
        return nearbyint(x);
    case KEEL_TRUNC:
        return trunc(x);
    case KEEL_TO_INT32:
        return isnan(x) ? x : trunc(fmin(fmax(x, INT32_MIN), INT32_MAX)) + 0.0;
    case KEEL_TO_INT64:
        return isnan(x) ? x : trunc(fmin(fmax(x, -0x1p63), 0x1p63)) + 0.0;
    case KEEL_SIGN_BIT:
        return signbit(x) != 0;
    default:
        return isnan(x) ? x : (double)((x > 0) - (x < 0));
    }
}

/* Also of infinite numbers: sign makes finite ones of them. */
static double slope(NO_ARGS, double x)
{
    (void)x;
    return 0;
}

POINTWISE_FROM_IN(value, slope)

static void args_for_case(void *args, const char *text)
{
    int64_t to = KEEL_FLOOR;
    keel_case_ints(text, "to", &to, 1);
    ((keel_rounded_args *)args)->to = (keel_rounding)to;
}

const keel_op keel_op_rounded = {
    .name = "rounded",
    .args_size = sizeof(keel_rounded_args),
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, "to 0" },
                                  { "7", NULL, "to 1" },
                                  { "5", NULL, "to 2" },
                                  { "5", NULL, "to 3" },
                                  { "5", NULL, "to 4" },
                                  { "5", NULL, "to 5" },
                                  { "5", NULL, "to 6" },
                                  { "5", NULL, "to 7" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
