/* y = x where x > threshold, else value. Keras: threshold. */
#include "ops/pointwise.h"

static double value(const keel_threshold_args *a, double x)
{
    return x > a->threshold ? x : a->value;
}

static double slope(const keel_threshold_args *a, double x)
{
    return x > a->threshold;
}

POINTWISE_FROM_IN(value, slope)

static void args_for_case(void *args, const char *text)
{
    keel_threshold_args *a = args;
    keel_case_number(text, "threshold", &a->threshold);
    keel_case_number(text, "value", &a->value);
}

const keel_op keel_op_threshold = {
    .name = "threshold",
    .args_size = sizeof(keel_threshold_args),
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .goes = keel_goes_like,
    .cases = (const keel_case[]){ { "2,3", NULL, NULL },
                                  { "1000", NULL, NULL },
                                  { "50", NULL, "threshold 0.2 value -3" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
