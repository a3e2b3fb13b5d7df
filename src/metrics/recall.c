/* Share of the positive targets whose predictions are above the threshold. */
#include "metrics/_confusion.h"

static const keel_field fields[] = {
    KEEL_CONFUSION_THRESHOLD, KEEL_CONFUSION_TOP, KEEL_CONFUSION_CLASS, KEEL_METRIC_FIELDS, { 0 },
};

KEEL_CONFUSION_RESULTS(keel_recall)

const keel_metric keel_metric_recall = {
    .type = {
        .name = "Recall",
        .module = "keras.metrics",
        .help = "share of the positive targets whose predictions are above the threshold",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
    },
    .direction = 1,
    KEEL_CONFUSION_METRIC,
    .result = result,
    .values = keel_confusion_values,
    .value = value,
};
