/* Share of the predictions above the threshold whose targets are positive. */
#include "metrics/_confusion.h"

static const keel_field fields[] = {
    KEEL_CONFUSION_THRESHOLD, KEEL_CONFUSION_TOP, KEEL_CONFUSION_CLASS, KEEL_METRIC_FIELDS, { 0 },
};

KEEL_CONFUSION_RESULTS(keel_precision)

const keel_metric keel_metric_precision = {
    .type = {
        .name = "Precision",
        .module = "keras.metrics",
        .help = "share of the predictions above the threshold whose targets are positive",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
    },
    .direction = 1,
    KEEL_CONFUSION_METRIC,
    .result = result,
    .values = keel_confusion_values,
    .value = value,
};
