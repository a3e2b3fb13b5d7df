/* Pearson's correlation of predictions and targets along the last axis, then the mean. */
#ifndef REAL
#include "metrics/metric.h"
#include <math.h>

static const keel_field fields[] = {
    KEEL_REFUSE("axis", "-1", "samples lie along the last axis"),
    KEEL_METRIC_FIELDS,
    { 0 },
};

#define REAL_FILE "metrics/pearson_correlation.c"
#include "ops/real.h"

const keel_metric keel_metric_pearson_correlation = {
    .type = {
        .name = "PearsonCorrelation",
        .module = "keras.metrics",
        .help = "correlation of predictions and targets along the last axis",
        .fields = fields,
    },
    .of = REALS(of),
    .result = keel_metric_mean,
};

#else
static double REAL_(of)(keel_elements *e)
{
    const REAL *p = e->y_pred, *t = e->y_true;
    const double n = (double)e->last;
    double sum = 0;
    for (int64_t k = 0; k < e->count; k++, p += e->last, t += e->last) {
        double mean_p = 0, mean_t = 0, of_p = 0, of_t = 0, both = 0;
        for (int64_t j = 0; j < e->last; j++) {
            mean_p += (double)p[j] / n;
            mean_t += (double)t[j] / n;
        }
        for (int64_t j = 0; j < e->last; j++) {
            const double x = (double)p[j] - mean_p, y = (double)t[j] - mean_t;
            of_p += x * x / n;
            of_t += y * y / n;
            both += x * y / n;
        }
        sum += both / (sqrt(of_p) * sqrt(of_t));
    }
    return sum;
}
#endif
