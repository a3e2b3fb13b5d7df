/* The loss of the same name as a metric. */
#include "metrics/metric.h"

extern const keel_loss keel_loss_log_cosh;

const keel_metric keel_metric_log_cosh_error = {
    .type = {
        .name = "LogCoshError",
        .module = "keras.metrics",
        .help = "mean of the logarithm of cosh of the differences",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_metric_fields,
    },
    .direction = -1,
    .loss = &keel_loss_log_cosh,
    .result = keel_metric_mean,
};
