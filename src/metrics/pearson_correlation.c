/* Pearson's correlation of predictions and targets along the last axis, then the mean. */
#ifndef REAL
#include "metrics/_correlation.h"
#include <math.h>

static double correlation(const keel_correlation *c)
{
    return c->covariance / (sqrt(c->var_pred) * sqrt(c->var_true));
}

#define REAL_FILE "metrics/pearson_correlation.c"
#include "ops/real.h"

const keel_metric keel_metric_pearson_correlation = {
    .type = {
        .name = "PearsonCorrelation",
        .module = "keras.metrics",
        .help = "correlation of predictions and targets along the last axis",
        .args_size = sizeof(keel_loss_with_axis),
        .fields = keel_correlation_fields,
    },
    .direction = 1,
    .axis_offset = offsetof(keel_loss_with_axis, axis),
    .of = REALS(of),
    .result = keel_metric_mean,
};

#else
KEEL_SUM_OF_CORRELATIONS(of, correlation)
#endif
