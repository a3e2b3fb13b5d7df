/* Root of the mean of the squared differences over all elements of all rows. */
#include "metrics/metric.h"
#include <math.h>

extern const keel_metric keel_metric_mean_squared_error;

static double result(const void *args, const double *sum, int64_t n)
{
    return sqrt(keel_metric_mean(args, sum, n));
}

static double of_f32(keel_elements *e)
{
    return keel_metric_mean_squared_error.of[0](e);
}

static double of_f64(keel_elements *e)
{
    return keel_metric_mean_squared_error.of[1](e);
}

const keel_metric keel_metric_root_mean_squared_error = {
    .type = {
        .name = "RootMeanSquaredError",
        .module = "keras.metrics",
        .help = "root of the mean of the squared differences",
        .fields = keel_metric_fields,
    },
    .direction = -1,
    .unmasked = true,
    .of = { of_f32, of_f64 },
    .result = result,
};
