/* How often a prediction lies on its target's side of the threshold. */
#ifndef REAL
#include "metrics/metric.h"
#include "losses/loss.h"

typedef struct args_t {
    double threshold;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, threshold, "0.5", 0, 0, "above it a prediction counts as 1"),
    KEEL_METRIC_FIELDS,
    { 0 },
};

#define REAL_FILE "metrics/binary_accuracy.c"
#include "ops/real.h"

const keel_metric keel_metric_binary_accuracy = {
    .type = {
        .name = "BinaryAccuracy",
        .module = "keras.metrics",
        .help = "how often predictions lie on the side of the threshold that the target names",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
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
