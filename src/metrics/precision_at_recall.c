/* Best precision at a threshold with at least that recall. */
#include "metrics/_confusion.h"

static const keel_field fields[] = { KEEL_CONFUSION_AT_LEAST("recall"), { 0 } };

static double result(const void *args, const double *sum, int64_t n)
{
    (void)n;
    return keel_confusion_best(args, sum, keel_recall, keel_precision);
}

const keel_metric keel_metric_precision_at_recall = {
    .type = {
        .name = "PrecisionAtRecall",
        .module = "keras.metrics",
        .help = "best precision at a threshold with at least that recall",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
        .ready = keel_confusion_at_least,
    },
    .direction = 1,
    KEEL_CONFUSION_METRIC,
    .result = result,
};
