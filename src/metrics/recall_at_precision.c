/* Best recall at a threshold with at least that precision. */
#include "metrics/_confusion.h"

static const keel_field fields[] = { KEEL_CONFUSION_AT_LEAST("precision"), { 0 } };

static double result(const void *args, const double *sum, int64_t n)
{
    (void)n;
    return keel_confusion_best(args, sum, keel_precision, keel_recall);
}

const keel_metric keel_metric_recall_at_precision = {
    .type = {
        .name = "RecallAtPrecision",
        .module = "keras.metrics",
        .help = "best recall at a threshold with at least that precision",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
        .ready = keel_confusion_at_least,
    },
    .direction = 1,
    KEEL_CONFUSION_METRIC,
    .result = result,
};
