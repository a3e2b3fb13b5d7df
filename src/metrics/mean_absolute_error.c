/* Mean of the absolute differences over all elements of a row, then over rows. */
#ifndef REAL
#include "metrics/metric.h"
#include "losses/loss.h"
#include <math.h>

static const keel_field fields[] = {
    KEEL_METRIC_FIELDS,
    { 0 },
};

static keel_status check(const void *args, const keel_spec *prediction, const keel_spec *target)
{
    keel_dense d = { 0 };
    (void)args;
    return keel_loss_dense("MeanAbsoluteError", prediction, target, &d);
}

#define REAL_FILE "metrics/mean_absolute_error.c"
#include "ops/real.h"

const keel_metric keel_metric_mean_absolute_error = {
    .type = {
        .name = "MeanAbsoluteError",
        .alias = "mae",
        .module = "keras.metrics",
        .help = "mean of the absolute differences",
        .fields = fields,
    },
    .alias2 = "MAE",
    .check = check,
    .update = REALS(update),
    .result = keel_metric_mean,
};

#else
static void REAL_(update)(const keel_metric_call *c)
{
    const REAL *p = c->y_pred, *t = c->y_true, *weight = c->weight;
    const int64_t n = keel_row_count(c->prediction);
    for (int64_t i = 0; i < c->rows; i++, p += n, t += n) {
        const double w = weight ? (double)weight[i] : 1;
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += fabs((double)(p[j] - t[j]));
        if (w != 0) c->sum[0] += w * (sum / (double)n);
        c->sum[1] += w;
    }
}
#endif
