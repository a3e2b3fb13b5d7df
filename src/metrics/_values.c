/* The mean of the values that a program gives; see losses/values.h. */
#include "losses/values.h"
#include "metrics/metric.h"

static const keel_field fields[] = {
    KEEL_METRIC_FIELDS,
    KEEL_VALUES_PROGRAM,
    { 0 },
};

const keel_metric keel_metric_values_mean = {
    .type = { .name = KEEL_VALUES,
              .module = "keel",
              .help = "the mean of the values of a program",
              .args_size = sizeof(keel_values_args),
              .fields = fields },
    .loss = &keel_loss_values,
    .result = keel_metric_mean,
};
