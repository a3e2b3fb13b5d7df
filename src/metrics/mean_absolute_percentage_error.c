/* The loss of the same name as a metric. */
#include "metrics/metric.h"

extern const keel_loss keel_loss_mean_absolute_percentage_error;

const keel_metric keel_metric_mean_absolute_percentage_error = {
    .type = {
        .name = "MeanAbsolutePercentageError",
        .alias = "mape|MAPE",
        .module = "keras.metrics",
        .help = "mean of the absolute differences in percent of the targets",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_metric_fields,
    },
    .direction = -1,
    .loss = &keel_loss_mean_absolute_percentage_error,
    .result = keel_metric_mean,
};
