/* The loss of the same name as a metric. */
#include "metrics/metric.h"

extern const keel_loss keel_loss_categorical_hinge;

const keel_metric keel_metric_categorical_hinge = {
    .type = {
        .name = "CategoricalHinge",
        .module = "keras.metrics",
        .help = "how little the prediction for the class exceeds the best of the others",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_metric_fields,
    },
    .direction = -1,
    .loss = &keel_loss_categorical_hinge,
    .result = keel_metric_mean,
};
