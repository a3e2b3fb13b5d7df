/* See _correlation.h. */
#ifndef REAL
#include "metrics/_correlation.h"

const keel_field keel_correlation_fields[] = {
    KEEL_SCORE_AXIS(keel_loss_with_axis),
    KEEL_METRIC_FIELDS,
    { 0 },
};

#define REAL_FILE "metrics/_correlation.c"
#include "ops/real.h"

#else
keel_correlation REAL_(keel_correlation)(const REAL *p, const REAL *t, int64_t n)
{
    const double count = (double)n;
    keel_correlation c = { 0 };
    for (int64_t j = 0; j < n; j++) {
        c.mean_pred += (double)p[j] / count;
        c.mean_true += (double)t[j] / count;
    }
    for (int64_t j = 0; j < n; j++) {
        const double x = (double)p[j] - c.mean_pred, y = (double)t[j] - c.mean_true;
        c.var_pred += x * x / count;
        c.var_true += y * y / count;
        c.covariance += x * y / count;
    }
    return c;
}
#endif
