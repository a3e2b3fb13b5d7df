/* Weight of other targets with a prediction above the threshold. */
#include "metrics/_confusion.h"

static double of(const keel_counts *c)
{
    return c->false_positives;
}

KEEL_CONFUSION_RESULTS(of)

const keel_metric keel_metric_false_positives = {
    .type = {
        .name = "FalsePositives",
        .module = "keras.metrics",
        .help = "weight of other targets with a prediction above the threshold",
        .args_size = sizeof(keel_confusion),
        .fields = keel_confusion_count_fields,
        .ready = keel_confusion_count,
    },
    KEEL_CONFUSION_METRIC,
    .result = result,
    .values = keel_confusion_values,
    .value = value,
};
