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

static keel_status check(const void *args, const keel_spec *prediction, const keel_spec *target)
{
    keel_dense d = { 0 };
    (void)args;
    return keel_loss_dense("BinaryAccuracy", prediction, target, &d);
}

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
    .check = check,
    .update = REALS(update),
    .result = keel_metric_mean,
};

#else
static void REAL_(update)(const keel_metric_call *c)
{
    const REAL *p = c->y_pred, *t = c->y_true, *weight = c->weight;
    const REAL threshold = (REAL)((const args_t *)c->args)->threshold;
    const int64_t n = keel_row_count(c->prediction);
    for (int64_t i = 0; i < c->rows; i++, p += n, t += n) {
        const double w = weight ? (double)weight[i] : 1;
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += (REAL)(p[j] > threshold) == t[j];
        if (w != 0) c->sum[0] += w * (sum / (double)n);
        c->sum[1] += w;
    }
}
#endif
