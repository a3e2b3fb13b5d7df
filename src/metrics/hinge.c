/* The loss of the same name as a metric. */
#include "metrics/metric.h"

extern const keel_loss keel_loss_hinge;

const keel_metric keel_metric_hinge = {
    .type = {
        .name = "Hinge",
        .module = "keras.metrics",
        .help = "mean of how far predictions are from their side of the margin",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_metric_fields,
    },
    .direction = -1,
    .loss = &keel_loss_hinge,
    .result = keel_metric_mean,
};
