/* Best specificity at a threshold with at least that sensitivity. */
#include "metrics/_confusion.h"

static const keel_field fields[] = { KEEL_CONFUSION_AT_LEAST("sensitivity"), { 0 } };

static double result(const void *args, const double *sum, int64_t n)
{
    (void)n;
    return keel_confusion_best(args, sum, keel_recall, keel_specificity);
}

const keel_metric keel_metric_specificity_at_sensitivity = {
    .type = {
        .name = "SpecificityAtSensitivity",
        .module = "keras.metrics",
        .help = "best specificity at a threshold with at least that sensitivity",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
        .ready = keel_confusion_at_least,
    },
    .direction = 1,
    KEEL_CONFUSION_METRIC,
    .result = result,
};
