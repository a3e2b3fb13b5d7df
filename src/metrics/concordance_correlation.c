/* Lin's concordance correlation of predictions and targets along the last axis, then the mean:
 * 2 cov / (var p + var t + (mean t - mean p)^2 + epsilon). */
#ifndef REAL
#include "metrics/_correlation.h"
#include <math.h>

static double correlation(const keel_correlation *c)
{
    const double apart = c->mean_true - c->mean_pred;
    return 2 * c->covariance / (c->var_pred + c->var_true + apart * apart + 1e-7);
}

#define REAL_FILE "metrics/concordance_correlation.c"
#include "ops/real.h"

const keel_metric keel_metric_concordance_correlation = {
    .type = {
        .name = "ConcordanceCorrelation",
        .module = "keras.metrics",
        .help = "how well predictions and targets along the last axis agree",
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
