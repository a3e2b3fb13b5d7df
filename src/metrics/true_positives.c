/* Weight of positive targets with a prediction above the threshold. */
#include "metrics/_confusion.h"

static double result(const void *args, const double *sum, int64_t n)
{
    (void)args;
    (void)n;
    return keel_confusion_single(sum).true_positives;
}

const keel_metric keel_metric_true_positives = {
    .type = {
        .name = "TruePositives",
        .module = "keras.metrics",
        .help = "weight of positive targets with a prediction above the threshold",
        .args_size = sizeof(keel_confusion),
        .fields = keel_confusion_count_fields,
        .ready = keel_confusion_count,
    },
    KEEL_CONFUSION_METRIC,
    .result = result,
};
