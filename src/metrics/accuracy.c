/* Fraction of predictions that equal their targets: keras.metrics.Accuracy. The name "accuracy" in
 * compile() means another metric, which keel_metric_resolve finds. */
#ifndef REAL
#include "metrics/metric.h"
#include "losses/loss.h"

#define REAL_FILE "metrics/accuracy.c"
#include "ops/real.h"

const keel_metric keel_metric_accuracy = {
    .type = {
        .name = "Accuracy",
        .module = "keras.metrics",
        .help = "how often predictions equal targets exactly",
        .fields = keel_metric_fields,
    },
    .direction = 1,
    .of = REALS(of),
    .result = keel_metric_mean,
};

#else
static double REAL_(of)(keel_elements *e)
{
    const REAL *p = e->y_pred, *t = e->y_true;
    double sum = 0;
    for (int64_t j = 0; j < e->count * e->last; j++) sum += p[j] == t[j];
    return sum / (double)e->last;
}
#endif
