/* The loss of the same name as a metric. */
#include "metrics/metric.h"

extern const keel_loss keel_loss_squared_hinge;

const keel_metric keel_metric_squared_hinge = {
    .type = {
        .name = "SquaredHinge",
        .module = "keras.metrics",
        .help = "mean of the squares of how far predictions are from their side of the margin",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_metric_fields,
    },
    .direction = -1,
    .loss = &keel_loss_squared_hinge,
    .result = keel_metric_mean,
};
