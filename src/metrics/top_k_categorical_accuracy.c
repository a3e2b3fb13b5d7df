/* How often the class of the one-hot target is among the k largest predictions. */
#ifndef REAL
#include "metrics/metric.h"
#include "losses/loss.h"
#include <math.h>

typedef struct args_t {
    int64_t k;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, k, "5", 1, 1e9, "how many of the largest predictions to look at"),
    KEEL_METRIC_FIELDS,
    { 0 },
};

static keel_status check(const void *args, const keel_spec *prediction, const keel_spec *target)
{
    keel_dense d = { 0 };
    (void)args;
    KEEL_TRY(keel_loss_dense("TopKCategoricalAccuracy", prediction, target, &d));
    if (!keel_shape_equal(&prediction->shape, &target->shape))
        return keel_fail(
            KEEL_ESHAPE,
            "TopKCategoricalAccuracy: targets must be one-hot, of the shape of the predictions");
    return KEEL_OK;
}

#define REAL_FILE "metrics/top_k_categorical_accuracy.c"
#include "ops/real.h"

const keel_metric keel_metric_top_k_categorical_accuracy = {
    .type = {
        .name = "TopKCategoricalAccuracy",
        .module = "keras.metrics",
        .help = "how often the class of a one-hot target is among the k largest predictions",
        .args_size = sizeof(args_t),
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

/* Like TensorFlow's in_top_k: ties with the k-th count, what is not finite does not. */
static bool REAL_(in_top)(const REAL *x, int64_t n, int64_t y, int64_t k)
{
    int64_t larger = 0;
    if (y < 0 || y >= n || !isfinite(x[y])) return false;
    for (int64_t j = 0; j < n; j++) {
        if (!isfinite(x[j])) return false;
        larger += x[j] > x[y];
    }
    return larger < k;
}

static void REAL_(update)(const keel_metric_call *c)
{
    const REAL *p = c->y_pred, *weight = c->weight;
    const REAL *t = c->y_true;
    const int64_t top = ((const args_t *)c->args)->k;
    keel_dense d = { 0 };
    if (keel_loss_dense("TopKCategoricalAccuracy", c->prediction, c->target, &d) < 0) return;
    for (int64_t i = 0; i < c->rows; i++) {
        const double w = weight ? (double)weight[i] : 1;
        int64_t hits = 0;
        for (int64_t k = 0; k < d.elements; k++, p += d.last, t += d.last) {
            const int64_t y = REAL_(argmax)(t, d.last);
            hits += REAL_(in_top)(p, d.last, y, top);
        }
        if (w != 0) c->sum[0] += w * ((double)hits / (double)d.elements);
        c->sum[1] += w;
    }
}
#endif
