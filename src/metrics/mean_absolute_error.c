/* Mean of the absolute differences over all elements of a row, then over rows. */
#ifndef REAL
#include "metrics/metric.h"
#include "losses/loss.h"
#include <math.h>

#define REAL_FILE "metrics/mean_absolute_error.c"
#include "ops/real.h"

const keel_metric keel_metric_mean_absolute_error = {
    .type = {
        .name = "MeanAbsoluteError",
        .alias = "mae|MAE",
        .module = "keras.metrics",
        .help = "mean of the absolute differences",
        .fields = keel_metric_fields,
    },
    .direction = -1,
    .of = REALS(of),
    .result = keel_metric_mean,
};

#else
static double REAL_(of)(keel_elements *e)
{
    const REAL *p = e->y_pred, *t = e->y_true;
    double sum = 0;
    for (int64_t j = 0; j < e->count * e->last; j++) sum += fabs((double)(p[j] - t[j]));
    return sum / (double)e->last;
}
#endif
