/* Fraction of predictions that are on the same side of the threshold as their targets. */
#ifndef REAL
#include "metrics/binary_accuracy.h"
#include "metrics/metric.h"
#include "losses/loss.h"

typedef keel_binary_accuracy args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, threshold, "0.5", 0, 0, "predictions above it count as 1"),
    KEEL_METRIC_FIELDS,
    { 0 },
};

#define REAL_FILE "metrics/binary_accuracy.c"
#include "ops/real.h"

const keel_metric keel_metric_binary_accuracy = {
    .type = {
        .name = "BinaryAccuracy",
        .module = "keras.metrics",
        .help = "how often a prediction is on the same side of the threshold as its target",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .direction = 1,
    .of = REALS(of),
    .result = keel_metric_mean,
};

#else
static double REAL_(of)(keel_elements *e)
{
    const REAL *p = e->y_pred, *t = e->y_true;
    const REAL threshold = (REAL)((const args_t *)e->args)->threshold;
    double sum = 0;
    for (int64_t j = 0; j < e->count * e->last; j++) sum += (REAL)(p[j] > threshold) == t[j];
    return sum / (double)e->last;
}
#endif
