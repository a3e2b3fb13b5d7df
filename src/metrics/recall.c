/* Share of the positive targets whose predictions are above the threshold. */
#include "metrics/_confusion.h"

static const keel_field fields[] = {
    KEEL_CONFUSION_THRESHOLD, KEEL_CONFUSION_TOP, KEEL_CONFUSION_CLASS, KEEL_METRIC_FIELDS, { 0 },
};

static double result(const void *args, const double *sum, int64_t n)
{
    (void)args;
    (void)n;
    const keel_counts c = keel_confusion_single(sum);
    return keel_recall(&c);
}

const keel_metric keel_metric_recall = {
    .type = {
        .name = "Recall",
        .module = "keras.metrics",
        .help = "share of the positive targets whose predictions are above the threshold",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
        .ready = keel_confusion_one,
    },
    .direction = 1,
    KEEL_CONFUSION_METRIC,
    .result = result,
};
