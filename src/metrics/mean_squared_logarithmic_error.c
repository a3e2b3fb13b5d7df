/* The loss of the same name as a metric. */
#include "metrics/metric.h"

extern const keel_loss keel_loss_mean_squared_logarithmic_error;

const keel_metric keel_metric_mean_squared_logarithmic_error = {
    .type = {
        .name = "MeanSquaredLogarithmicError",
        .alias = "msle|MSLE",
        .module = "keras.metrics",
        .help = "mean of the squared differences of the logarithms of 1 + x",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_metric_fields,
    },
    .direction = -1,
    .loss = &keel_loss_mean_squared_logarithmic_error,
    .result = keel_metric_mean,
};
