/* How often the largest prediction stands where the largest of the one-hot target does. */
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
    KEEL_TRY(keel_loss_dense("CategoricalAccuracy", prediction, target, &d));
    if (!keel_shape_equal(&prediction->shape, &target->shape))
        return keel_fail(
            KEEL_ESHAPE,
            "CategoricalAccuracy: targets must be one-hot, of the shape of the predictions");
    return KEEL_OK;
}

#define REAL_FILE "metrics/categorical_accuracy.c"
#include "ops/real.h"

const keel_metric keel_metric_categorical_accuracy = {
    .type = {
        .name = "CategoricalAccuracy",
        .module = "keras.metrics",
        .help = "how often the largest prediction is the class of a one-hot target",
        .fields = fields,
    },
    .check = check,
    .update = REALS(update),
    .result = keel_metric_mean,
};

#else
static int64_t REAL_(argmax)(const REAL *x, int64_t n) /* the first of the largest */
{
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        if (x[j] > x[best]) best = j;
    return best;
}

static void REAL_(update)(const keel_metric_call *c)
{
    const REAL *p = c->y_pred, *weight = c->weight;
    const REAL *t = c->y_true;
    keel_dense d = { 0 };
    if (keel_loss_dense("CategoricalAccuracy", c->prediction, c->target, &d) < 0) return;
    for (int64_t i = 0; i < c->rows; i++) {
        const double w = weight ? (double)weight[i] : 1;
        int64_t hits = 0;
        for (int64_t k = 0; k < d.elements; k++, p += d.last, t += d.last)
            hits += REAL_(argmax)(p, d.last) == REAL_(argmax)(t, d.last);
        if (w != 0) c->sum[0] += w * ((double)hits / (double)d.elements);
        c->sum[1] += w;
    }
}
#endif
