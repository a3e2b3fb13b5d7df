/* The loss of the same name as a metric. */
#include "metrics/metric.h"

extern const keel_loss keel_loss_poisson;

const keel_metric keel_metric_poisson = {
    .type = {
        .name = "Poisson",
        .module = "keras.metrics",
        .help = "negative logarithm of the likelihood of counts",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_metric_fields,
    },
    .direction = -1,
    .loss = &keel_loss_poisson,
    .result = keel_metric_mean,
};
