/* Lin's concordance correlation of predictions and targets along the last axis, then the mean:
 * 2 cov / (var p + var t + (mean t - mean p)^2 + epsilon). */
#ifndef REAL
#include "metrics/metric.h"
#include <math.h>

static const keel_field fields[] = {
    KEEL_REFUSE("axis", "-1", "samples lie along the last axis"),
    KEEL_METRIC_FIELDS,
    { 0 },
};

#define REAL_FILE "metrics/concordance_correlation.c"
#include "ops/real.h"

const keel_metric keel_metric_concordance_correlation = {
    .type = {
        .name = "ConcordanceCorrelation",
        .module = "keras.metrics",
        .help = "how well predictions and targets along the last axis agree",
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
        sum += 2 * both / (of_p + of_t + (mean_t - mean_p) * (mean_t - mean_p) + 1e-7);
    }
    return sum;
}
#endif
