/* Mean of the squared differences over all elements of a row, then over rows. */
#ifndef REAL
#include "metrics/metric.h"
#include "losses/loss.h"

static const keel_field fields[] = {
    KEEL_METRIC_FIELDS,
    { 0 },
};

static keel_status check(const void *args, const keel_spec *prediction, const keel_spec *target)
{
    keel_dense d = { 0 };
    (void)args;
    return keel_loss_dense("MeanSquaredError", prediction, target, &d);
}

#define REAL_FILE "metrics/mean_squared_error.c"
#include "ops/real.h"

const keel_metric keel_metric_mean_squared_error = {
    .type = {
        .name = "MeanSquaredError",
        .alias = "mse",
        .module = "keras.metrics",
        .help = "mean of the squared differences",
        .fields = fields,
    },
    .alias2 = "MSE",
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
        for (int64_t j = 0; j < n; j++) {
            const double e = (double)(p[j] - t[j]);
            sum += e * e;
        }
        if (w != 0) c->sum[0] += w * (sum / (double)n);
        c->sum[1] += w;
    }
}
#endif
