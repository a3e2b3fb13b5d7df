/* Weight of other targets with a prediction above the threshold. */
#include "metrics/_confusion.h"

static const keel_field fields[] = { KEEL_CONFUSION_THRESHOLD, KEEL_METRIC_FIELDS, { 0 } };

static keel_status ready(void *args)
{
    ((keel_confusion *)args)->top_k = ((keel_confusion *)args)->class_id = KEEL_INT_NULL;
    return keel_confusion_one(args);
}

static double result(const void *args, const double *sum, int64_t n)
{
    (void)args;
    (void)n;
    return keel_confusion_single(sum).false_positives;
}

const keel_metric keel_metric_false_positives = {
    .type = {
        .name = "FalsePositives",
        .module = "keras.metrics",
        .help = "weight of other targets with a prediction above the threshold",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
        .ready = ready,
    },
    .check = keel_confusion_check,
    .sums = keel_confusion_sums,
    .add = keel_confusion_add,
    .result = result,
};
