/* y = x where |x| > threshold, else 0. Keras: hard_shrink. */
#include "ops/pointwise.h"

static double value(const keel_threshold_args *a, double x)
{
    return fabs(x) > a->threshold ? x : 0;
}

static double slope(NO_ARGS, double y)
{
    return y != 0;
}

POINTWISE_FROM_OUT(value, slope)

static void args_for_case(void *args, const char *text)
{
    keel_threshold_args *a = args;
    a->threshold = 0.5;
    keel_case_number(text, "threshold", &a->threshold);
}

const keel_op keel_op_hard_shrink = {
    .name = "hard_shrink",
    .args_size = sizeof(keel_threshold_args),
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, NULL },
                                  { "1000", NULL, NULL },
                                  { "50", NULL, "threshold 0.2" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
