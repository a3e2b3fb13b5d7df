/* Best sensitivity at a threshold with at least that specificity. */
#include "metrics/_confusion.h"

static const keel_field fields[] = { KEEL_CONFUSION_AT_LEAST("specificity"), { 0 } };

static double result(const void *args, const double *sum, int64_t n)
{
    (void)n;
    return keel_confusion_best(args, sum, keel_specificity, keel_recall);
}

const keel_metric keel_metric_sensitivity_at_specificity = {
    .type = {
        .name = "SensitivityAtSpecificity",
        .module = "keras.metrics",
        .help = "best sensitivity at a threshold with at least that specificity",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
        .ready = keel_confusion_at_least,
    },
    .direction = 1,
    KEEL_CONFUSION_METRIC,
    .result = result,
};
